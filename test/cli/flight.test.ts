/** `braid run --flight` and `braid verify --flight`. */
import { existsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { cli } from "./captured-cli.ts";
import { ownFolder } from "./own-folder.ts";

const fixture = (name: string): string => path.resolve(import.meta.dirname, `../fixtures/findings/${name}.hir`);

const folder = ownFolder();

describe("the record of a failed run", () => {
  it("is written where --flight says, and compared", async () => {
    const records = path.join(folder.path, "records");
    const run = (name: string) => cli("run", fixture(name), "--verify", "off", "--flight", records);
    expect((await run("data-race")).status).toBe(0);
    expect(existsSync(records)).toBe(false);
    const { status, err } = await run("deadlock");
    expect(status).toBe(3);
    expect(err).toContain(`note: flight record: braid verify --flight ${records}\n`);

    const compared = await cli("verify", "--flight", records);
    expect(compared.status).toBe(1);
    expect(compared.out).toMatch(/^error\[stuck\]: 2 streams wait for each other\n/);
    expect(compared.out).toMatch(/^rank 0: in run 1, 10 of 10 commands posted$/m);
    expect(compared.out).toMatch(
      / {2}NCCL pair \(0 1\): waits at command 2 \(transfer\) of: .* for rank 1 at: P2PComm/,
    );
    expect(compared.out).toContain("ranks 0, 1: stuck: no stream can proceed");
    const verbose = await cli("verify", "--flight", records, "--print", "all");
    expect(verbose.out).toMatch(/^ {4}ended command 0 \(/m);
    const document: unknown = JSON.parse((await cli("verify", "--flight", records, "--json")).out);
    expect(document).toMatchObject({ flight: records, ok: false, ranks: [{ rank: 0 }, { rank: 1 }] });
  });
});

describe("braid verify", () => {
  it.each([
    [["--flight", "nowhere"], "found: nowhere: no such file or directory"],
    [["--flight", import.meta.dirname], "it has no rank-0.json or other flight record"],
    [["x.ts", "--flight", "."], "found: --flight with the file x.ts"],
    [[], "missing required argument 'file'"],
  ])("%j is refused", async (args, message) => {
    const { status, err } = await cli("verify", ...args);
    expect(status).toBe(2);
    expect(err).toContain(message);
  });

  it("refuses a record that has another form", async () => {
    const file = path.join(folder.path, "rank-0.json");
    for (const text of ["{", "{}", '{"format":"braid flight record 1"}']) {
      writeFileSync(file, text);
      const { status, err } = await cli("verify", "--flight", folder.path);
      expect(status).toBe(2);
      expect(err).toContain(
        `error[file-unreadable]: a flight record cannot be read\n  at: --flight\n  found: ${file}: it`,
      );
    }
  });
});
