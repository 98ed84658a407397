/** `braid explain` of traces of PyTorch's profiler: text, JSON, compressed files in a folder, and what is none. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { cli } from "./captured-cli.ts";
import { ownFolder } from "./own-folder.ts";

const folder = ownFolder();
const traces = [0, 1].map((rank) => path.join(import.meta.dirname, `../import/profiler-traces/step-rank${rank}.json`));
const [first = ""] = traces;

it("says what no kernel hides, by rank and collective, and who is late", async () => {
  const { status, out, err } = await cli("explain", ...traces);
  expect([status, err]).toEqual([0, ""]);
  expect(out).toContain("2 ranks, the mean of 3 steps");
  expect(out).toMatch(/^0 +1\.88 ms +1\.27 ms +598\.1 us +565\.5 us +77\.8 us +41\.6 us$/mu);
  expect(out).toMatch(/^_reduce_scatter_base +tp \(0 1\) +BFloat16 +33,554,432 +2 +192\.4 us +379 +192\.4 us/mu);
  expect(out).toContain("no kernel hides 30.1 % of a step of rank 0: 565.5 us of communication");
  expect(out).toContain("rank 1 is late most: others wait 77.8 us a step for it");
});

it("has the same as JSON, of compressed files in a folder", async () => {
  const plain = await cli("explain", ...traces, "--json");
  const packed = path.join(folder.path, "packed");
  mkdirSync(packed);
  writeFileSync(path.join(packed, "notes.txt"), "of a run");
  for (const [rank, file] of traces.entries()) {
    writeFileSync(path.join(packed, `host_${rank}.pt.trace.json.gz`), gzipSync(readFileSync(file)));
  }
  const { status, out } = await cli("explain", packed, "--json");
  expect([status, out]).toEqual([0, plain.out]);
  expect(JSON.parse(out)).toMatchObject({ traces: 2, rank: 0, late: [{ rank: 1 }] });
});

it.each<[what: string, content: Uint8Array | string, text: RegExp]>([
  ["a trace that was cut", '{\n  "schemaVersion": 1,\n  "traceEvents": [', /^error\[trace-invalid\]: .*no JSON/u],
  ["a compressed one that was cut", gzipSync("{}").subarray(0, 12), /^error\[trace-invalid\]: .*no JSON/u],
  ["one of the host alone", '{"schemaVersion": 1, "traceEvents": []}', /found: no kernel of a GPU/u],
])("%s ends with 2", async (what, content, text) => {
  const file = path.join(folder.path, `${what.replaceAll(" ", "-")}.json`);
  writeFileSync(file, content);
  const { status, err } = await cli("explain", file);
  expect(status).toBe(2);
  expect(err).toMatch(text);
});

it("a program beside traces ends with 2", async () => {
  const { status, err } = await cli("explain", first, folder.write("program.ts", "export default 1;"));
  expect(status).toBe(2);
  expect(err).toContain("error[option-value]: several files can be explained only if they are traces");
});
