/** `braid verify` of PyTorch's flight records. */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  documentOf,
  jsonBytes,
  pickleBytes,
  type WrittenEntry,
  type WrittenGroups,
} from "../import/flight-records/written-records.ts";
import { cli, programFolder, type ProgramFolder } from "./captured-cli.ts";

const groups: WrittenGroups = { "0": ["default_pg", [0, 1, 2, 3]], "1": ["tp", [0, 1]], "2": ["tp", [2, 3]] };

/** Rank 3 leaves the step after its gather; rank 2 waits for it there, and ranks 0 and 1 wait for both. */
const step = (rank: number): readonly WrittenEntry[] => {
  const tp = rank < 2 ? "1" : "2";
  const gather = {
    op: "_all_gather_base",
    group: tp,
    inputs: [[512, 4096]],
    outputs: [[1024, 4096]],
    dtype: "BFloat16",
  };
  const scatter = {
    op: "_reduce_scatter_base",
    group: tp,
    inputs: [[1024, 4096]],
    outputs: [[512, 4096]],
    dtype: "BFloat16",
  };
  const first: readonly WrittenEntry[] = [
    { op: "broadcast", inputs: [[1]], dtype: "Long", line: 31 },
    { ...gather, line: 80 },
  ];
  if (rank === 3) return first;
  if (rank === 2) return [...first, { ...scatter, line: 84, state: "started" }];
  return [...first, { ...scatter, line: 84 }, { op: "all_reduce", inputs: [[4096, 4096]], line: 97, state: "started" }];
};

let folder: ProgramFolder;
let records: readonly string[];
beforeAll(() => {
  folder = programFolder();
  records = [0, 1, 2, 3].map((rank) => path.join(folder.path, "hang", `nccl_trace_rank_${rank}`));
  mkdirSync(path.join(folder.path, "hang"));
  for (const [rank, file] of records.entries()) writeFileSync(file, pickleBytes(documentOf(step(rank), groups)));
  writeFileSync(path.join(folder.path, "hang", "notes.txt"), "not a record");
});
afterAll(() => folder.remove());

describe("records of a hang", () => {
  it("are compared, given by name or by their folder", async () => {
    const { status, out, err } = await cli("verify", ...records);
    expect([status, err]).toEqual([1, ""]);
    expect((await cli("verify", path.join(folder.path, "hang"))).out).toBe(out);
    const fixture = path.resolve(import.meta.dirname, "../fixtures/findings/flight-records.txt");
    await expect(out.replaceAll(`${path.join(folder.path, "hang")}/`, "")).toMatchFileSnapshot(fixture);
  });

  it("end with 0 where no rank waits, as JSON too", async () => {
    const files = [0, 1].map((rank) => {
      const file = path.join(folder.path, `fr_${rank}.json`);
      writeFileSync(file, jsonBytes(documentOf([{ op: "all_reduce" }], { "0": ["default_pg", [0, 1]] })));
      return file;
    });
    const { status, out } = await cli("verify", ...files, "--json");
    expect(status).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      records: 2,
      ok: true,
      findings: [],
      groups: [{ name: "0", description: "default_pg", ranks: [0, 1], lastInCommon: 1 }],
      ranks: [
        { rank: 0, transfers: 1, waits: [] },
        { rank: 1, transfers: 1, waits: [] },
      ],
    });
  });
});

describe("what is refused, with status 2", () => {
  it("a record that is damaged", async () => {
    const file = path.join(folder.path, "nccl_trace_rank_9");
    writeFileSync(file, pickleBytes(documentOf(step(0), groups)).subarray(0, -40));
    const { status, err } = await cli("verify", file);
    expect(status).toBe(2);
    expect(err).toMatch(
      /^error\[record-invalid\]: a flight record is no pickle of plain data\n {2}at: .*nccl_trace_rank_9\n/u,
    );
  });

  it("another file beside records", async () => {
    const { status, err } = await cli("verify", ...records, path.join(folder.path, "hang", "notes.txt"));
    expect(status).toBe(2);
    expect(err).toContain("error[option-value]: several files can be verified only if they are flight records");
    expect(err).toContain("notes.txt, which is none");
  });

  it("two records of one rank", async () => {
    const { status, err } = await cli("verify", ...records, records[0] ?? "");
    expect([status, err.split("\n")[0]]).toEqual([2, "error[record-invalid]: two flight records are of rank 0"]);
  });
});
