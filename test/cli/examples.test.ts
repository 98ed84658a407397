/** Every example lowers on every rank, and runs and checks, with 1, 2, 3, 4 and 8 devices and 1, 3 and 8 streams. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { cli } from "./captured-cli.ts";

const folder = path.resolve(import.meta.dirname, "../../examples");
const examples = readdirSync(folder).filter((name) => name.endsWith(".ts"));
const deviceCounts = [1, 2, 3, 4, 8];
const streamCounts = [1, 3, 8];

interface RunDocument {
  readonly outputs: readonly { readonly fingerprint: string; readonly check: { readonly ok: boolean } }[];
}

it("the examples are those of the documentation", () => {
  expect(examples.map((name) => name.replace(".ts", ""))).toEqual([
    "allgather-matmul",
    "allgather",
    "allreduce",
    "hand-built",
    "matmul-allreduce",
    "matmul-reduce-scatter-p2p",
    "matmul-reduce-scatter-reduce",
    "matmul-reduce-scatter",
    "pipeline",
    "reduce-scatter",
    "ring-allgather-matmul",
    "set",
  ]);
});

describe.each(examples)("%s", (name) => {
  const file = path.join(folder, name);

  it("shows its command", () => {
    expect(readFileSync(file, "utf8")).toContain(`npx braid run examples/${name} --check\n`);
  });

  it.each(deviceCounts)("lowers for every rank of %i devices", async (devices) => {
    for (let rank = 0; rank < devices; rank++) {
      const { status, out, err } = await cli("lower", file, "--devices", String(devices), "--rank", String(rank));
      expect([status, err]).toEqual([0, ""]);
      // A ring of one device has no loop.
      const loop =
        name === "hand-built.ts" ? (devices === 1 ? "= matmul\\(" : "FOR i\\d+ from 0 to") : "FOR streamIdx in ";
      expect(out).toMatch(new RegExp(`^\\n%HostIrContainer \\{ .*${loop}.*\\} // %HostIrContainer\\n`, "s"));
    }
  });

  it.each(deviceCounts)(
    "runs on %i devices as the oracle does, with the same bits on any number of streams",
    async (devices) => {
      const fingerprints = new Set<string>();
      for (const streams of streamCounts) {
        // Without a BLAS: its bits depend on whether a product is done in parts, which depends on who is idle.
        const args = ["--devices", String(devices), "--streams", String(streams), "--blas", "off", "--check", "--json"];
        const { status, out, err } = await cli("run", file, ...args);
        expect([status, err]).toEqual([0, ""]);
        const { outputs } = JSON.parse(out) as RunDocument;
        expect(outputs).toHaveLength(1);
        for (const { fingerprint, check } of outputs) {
          expect(check.ok).toBe(true);
          fingerprints.add(fingerprint);
        }
      }
      expect(fingerprints.size).toBe(1);
    },
  );
});
