/**
 * The fusions behind nvFuser's two-loop dumps print as those dumps, but for the numbers of expressions: T, axis, scalar and stream
 * numbers follow nvFuser's creation order. The one-loop dumps' fusions print in two-loop form.
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { DeviceMesh, Fusion, linear, lower, matmul, print, set, sum, type TensorView } from "braid";
import { normaliseDump } from "../support/normalise-dump.ts";

const folder = join(dirname(fileURLToPath(import.meta.url)), "../fixtures/dumps");

/** Expressions count up from 0 in order of appearance; blank lines around the container are left out. */
function normalized(text: string): string {
  const numbers = new Map<string, number>();
  const renumber = (_: string, verb: string, number: string): string => {
    if (!numbers.has(number)) numbers.set(number, numbers.size);
    return `${verb} ${numbers.get(number) ?? ""}`;
  };
  return text.replaceAll(/\b(Communication|EndCoalescing) (\d+)/gu, renumber).trim();
}

function onMesh(tensors: readonly TensorView[]): void {
  for (const tensor of tensors) tensor.setDeviceMesh(DeviceMesh.range(8));
}

const fusions: Readonly<Record<string, () => Fusion>> = {
  "e2-allgather": () => {
    const f = new Fusion();
    const x = f.input([null, null]);
    const y = set(x);
    f.output(y);
    onMesh([x, y]);
    x.axis(1).parallelize("DIDx");
    y.axis(0).parallelize("Stream");
    return f;
  },
  "e2-allreduce": () => {
    const f = new Fusion();
    const x = f.input([null, null, null]);
    const y = sum(x, [1]);
    f.output(y);
    onMesh([x, y]);
    x.axis(1).parallelize("DIDx");
    y.axis(0).parallelize("Stream");
    return f;
  },
  "e2-allgather-matmul": () => {
    const f = new Fusion();
    const a = f.input([null, null, null, null]);
    const b = f.input([null, null]);
    const c = matmul(a, b);
    f.output(c);
    onMesh([a, b, c]);
    a.axis(1).parallelize("DIDx");
    c.axis(0).parallelize("Stream");
    return f;
  },
};

/** nvFuser neither frees nor shrinks. */
const unchanged = { deallocate: false, shrink: false } as const;

describe.each(Object.keys(fusions))("%s", (name) => {
  it("prints as nvFuser printed it", () => {
    const fusion = fusions[name]?.() ?? new Fusion();
    const host = lower(fusion, unchanged);
    const dump = readFileSync(join(folder, `${name}.hir`), "utf8");
    expect(normalized(print(host, { style: "2025-05" }))).toBe(normalized(dump));
  });
});

describe("one-loop dumps", () => {
  it.each([
    ["e1-single-set", 1],
    ["e1-two-sets", 2],
  ])("%s: the same statements in two loops", (name, sets) => {
    const f = new Fusion();
    const outputs = [f.input([null, null])];
    for (let i = 0; i < sets; i++) {
      const last = outputs.at(-1);
      if (last === undefined) break;
      const next = set(last);
      next.axis(0).parallelize("Stream");
      outputs.push(next);
    }
    f.output(outputs[sets] ?? set(f.input([null])));
    const text = print(lower(f, unchanged), { style: "2025-04" });
    const dump = readFileSync(join(folder, `${name}.hir`), "utf8");
    // Two-loop form moves GetCurrentStream out and the synchronization with it into a loop of its own.
    const lines = (of: string): string[] => of.split("\n").filter((line) => line.trim() !== "");
    const body = new Set(lines(text));
    const missing = lines(dump).filter((line) => !body.has(line) && !line.includes("GetCurrentStream"));
    expect(missing).toEqual([]);
    expect(text).toMatch(
      /GetCurrentStream into Stream 0\n {2}FOR StreamIdx[^\n]*\n[^\n]*\n {4}Synchronize Stream 0\n {2}FOR/u,
    );
  });
});

describe("point-to-point dumps", () => {
  const dump = (name: string): string => normaliseDump(readFileSync(join(folder, `${name}.hir`), "utf8")).text;

  it("e2b-allgather-p2p-nccl: the linear Allgather prints as nvFuser printed it", () => {
    const f = new Fusion();
    const x = f.input([null, null]);
    const y = set(x);
    f.output(y);
    onMesh([x, y]);
    x.axis(0).parallelize("DIDx");
    y.axis(0).parallelize("Stream");
    const text = print(lower(f, { ...unchanged, p2p: "linear" }), { style: "2025-05" });
    expect(normaliseDump(text).text).toBe(dump("e2b-allgather-p2p-nccl"));
  });

  it("e3-allgather-linear-p2p-cuda: the one-sided pipeline, with the Wait of the send at the end of the iteration", () => {
    const f = new Fusion();
    const x = f.input([8, 128, 1024], "bfloat16");
    const weight = f.input([1024, 1024], "bfloat16");
    const bias = f.input([1024], "bfloat16");
    const y = linear(x, weight, bias);
    f.output(y);
    onMesh([x, weight, bias, y]);
    x.axis(0).parallelize("DIDx");
    y.axis(0).parallelize("Stream");
    const lines = (of: string): string[] => of.split("\n");
    const text = lines(normaliseDump(print(lower(f, { ...unchanged, backend: "cuda" }))).text);
    // The dump is of the time when both Waits stood in the branch, that of the send first.
    const own = text.findLastIndex((line) => line.trim().startsWith("IF Manual"));
    const branch = text.splice(own, 3);
    expect(branch.map((line) => line.trim())).toEqual([
      "IF Manual ( ( ( 8 + ( rank - streamIdx ) ) % 8 ) == rank ):",
      "ELSE:",
      "Wait Communication #1",
    ]);
    const expected = lines(dump("e3-allgather-linear-p2p-cuda")).filter(
      (line) => line.trim() !== "Wait Communication #1",
    );
    expect(text).toEqual(expected);
  });
});
