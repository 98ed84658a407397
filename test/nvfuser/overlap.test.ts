/**
 * nvFuser's tests/cpp/test_overlap.cpp and tests/python/multidevice/test_overlap.py: shardings, communications and
 * loops. nvFuser lowers one of the seven C++ programs; Braid runs all of them, in the long suite.
 */
import { describe, expect, it } from "vitest";
import { compile, lower } from "@braid-compiler/braid";
import { walk } from "../../src/host/traverse.ts";
import { launchesOf } from "../support/launches.ts";
import { propagated } from "../support/propagated.ts";
import { overlapPrograms } from "./overlap-programs.ts";
import { pythonOverlapPrograms, rowParallel } from "./overlap-python-programs.ts";
import { expectCommunications, type SuiteProgram } from "./setup.ts";

function resultOf({ build, setting }: SuiteProgram): readonly string[] {
  const f = build(2);
  return f.outputs.map(propagated(f, { accumulate: setting?.accumulate ?? false }));
}

/** nvFuser prints Stream and devices first; here axes keep their order. */
const shardings: Readonly<Record<string, string>> = {
  ColumnAndSequenceParallelLinear_Forward: "s2 3 x2 8 r2",
  ColumnAndSequenceParallelLinear_WeightGrad: "x2 8 2 rs2 r3",
  ColumnAndSequenceParallelLinear_InputGrad: "x2 3 2 rx2 r8",
  RowAndSequenceParallelLinear_Forward: "x2 3 2 rx2 r8",
  RowAndSequenceParallelLinear_WeightGrad: "2 x2 8 rs2 r3",
  RowAndSequenceParallelLinear_InputGrad: "s2 3 x2 8 r2",
  "CollectiveBasedOverlapTest.RowParallelLinear_Forward": "s2 3 2 rx2 r8",
};

/** The matmul of every program but these runs in the loop, chunk by chunk. Their results have no Stream. */
const withoutLoop: readonly string[] = [
  "ColumnAndSequenceParallelLinear_InputGrad",
  "RowAndSequenceParallelLinear_Forward",
];

function matmulsInLoops({ build, setting }: SuiteProgram): number {
  const { p2p, accumulate } = { p2p: "rotated" as const, accumulate: false, ...setting };
  const { body } = lower(build(2), { p2p, accumulate });
  const inLoops = walk(body.filter(({ kind }) => kind === "ForLoop"));
  return inLoops.filter(({ kind }) => kind === "Linear" || kind === "Matmul").length;
}

describe("C++", () => {
  it.each(overlapPrograms)("$name", (program) => {
    expect(resultOf(program)).toEqual([shardings[program.name]]);
    expectCommunications(program);
    // Sums over chunks have a matmul for the first chunk and one for those that are added to it.
    const inLoop = program.setting?.accumulate === true ? 2 : 1;
    expect(matmulsInLoops(program)).toBe(withoutLoop.includes(program.name) ? 0 : inLoop);
  });
});

describe("Python", () => {
  it.each(pythonOverlapPrograms)("$name", (program) => {
    expectCommunications(program);
  });

  it("test_row_parallel_linear_forward, one linear of [t/s, 4h/d] by [h, 4h/d] per chunk", () => {
    const { recorded } = compile(rowParallel.build(2), { devices: 2 });
    for (const rank of [0, 1]) {
      const linears = launchesOf(recorded, rank).filter(({ kind }) => kind === "linear");
      expect(linears.map(({ inputs, outputs }) => [...inputs, ...outputs])).toEqual(
        [0, 1, 2].map(() => [
          [2, 4],
          [2, 4],
          [2, 2],
        ]),
      );
    }
  });

  it.each(["rotated", "broadcast"] as const)("test_column_parallel_linear_forward, %s: messages", (p2p) => {
    const program = pythonOverlapPrograms.find(({ setting }) => setting?.p2p === p2p);
    const { recorded } = compile(program?.build(3) ?? rowParallel.build(3), { devices: 3, p2p });
    // d - 1 sends and receives, or d broadcasts.
    const transfers = recorded.ranks.map(({ commands }) => commands.filter(({ kind }) => kind === "transfer").length);
    expect(transfers).toEqual(p2p === "rotated" ? [2, 2, 2] : [3, 3, 3]);
  });

  it("test_allgather_matmul_no_overlap, without loops", () => {
    const programs = pythonOverlapPrograms.filter(({ name }) => name.startsWith("test_allgather_matmul_no_overlap"));
    for (const { build } of programs) {
      expect(walk(lower(build(2)).body).filter(({ kind }) => kind === "ForLoop")).toEqual([]);
    }
  });
});
