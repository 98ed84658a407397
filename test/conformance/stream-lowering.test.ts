/**
 * nvFuser's test_host_ir_stream_lowering.cpp, the MultiDeviceExecutor twins: Fusions on one device whose Stream axes
 * become loops, or are refused. The statement kinds are nvFuser's; results are compared with the oracle. The whole
 * messages: test/fixtures/stream-parallel-type/error-*.
 */
import { describe, expect, it } from "vitest";
import { abs, add, Fusion, lower, matmul, MultiDeviceExecutor, set, sum, type TensorView } from "@braid-compiler/braid";
import { expectOracle } from "../support/expect-oracle.ts";

const loop = ["Allocate", "GetCurrentStream", "ForLoop", "ForLoop"];

interface Case {
  readonly name: string;
  readonly build: (f: Fusion) => TensorView;
  readonly kinds: readonly string[];
}

const cases: readonly Case[] = [
  { name: "SingleSetOp", build: (f) => streamed(set(f.input([4, 8])), 0), kinds: loop },
  { name: "SingleSetOpNonOutermost", build: (f) => streamed(set(f.input([4, 8])), 1), kinds: loop },
  { name: "SingleBinaryOp", build: (f) => streamed(add(f.input([4, 4]), f.input([4, 4])), 0), kinds: loop },
  {
    name: "TwoSetOps",
    build: (f) => streamed(set(streamed(set(f.input([4, 8])), 0)), 0),
    kinds: ["Allocate", ...loop, "Deallocate"],
  },
  {
    name: "ThreeSetOpsWithDisjointsForLoops",
    build: (f) => streamed(set(set(streamed(set(f.input([4, 8])), 0))), 0),
    kinds: [...loop, "Set", "Deallocate", ...loop, "Deallocate"],
  },
  { name: "Reduction", build: (f) => streamed(sum(f.input([4, 8, 2]), [2]), 0), kinds: loop },
  { name: "Matmul_M", build: (f) => streamed(matmul(f.input([8, 4]), f.input([4, 2])), 0), kinds: loop },
  { name: "BatchedMatmul", build: (f) => streamed(matmul(f.input([16, 8, 4]), f.input([4, 2])), 0), kinds: loop },
  { name: "Matmul_N", build: (f) => streamed(matmul(f.input([8, 4]), f.input([4, 2])), 1), kinds: loop },
];

function streamed(tensor: TensorView, axis: number): TensorView {
  tensor.axis(axis).parallelize("Stream");
  return tensor;
}

const limits = { nvfuserLimits: true } as const;

describe.each(cases)("$name", ({ build, kinds }) => {
  const make = (): Fusion => {
    const f = new Fusion();
    f.output(build(f));
    return f;
  };

  it("has nvFuser's top-level statements", () => {
    expect(lower(make(), limits).body.map((statement) => statement.kind)).toEqual(kinds);
    const withoutFrees = kinds.filter((kind) => kind !== "Deallocate");
    expect(lower(make(), { ...limits, deallocate: false }).body.map((statement) => statement.kind)).toEqual(
      withoutFrees,
    );
  });

  it.each([1, 3, 8])("gives the oracle's result on %i streams", async (streams) => {
    await expectOracle(make(), { devices: 1, streams });
  });
});

describe("what the executor refuses", () => {
  const refused: readonly (readonly [name: string, build: Case["build"], code: string])[] = [
    ["Split", (f) => streamed(set(f.input([4, 8])).split(0, 2), 0), "stream-on-split-axis"],
    ["Merge", (f) => streamed(set(f.input([4, 8])).merge(0), 0), "stream-on-split-axis"],
    ["ReductionUnsupported", (f) => streamed(sum(f.input([4, 8]), [0]), 0), "stream-on-reduction-axis"],
    ["Matmul_K", (f) => streamed(matmul(f.input([8, 4]), f.input([4, 2])), 2), "stream-on-reduction-axis"],
    ["InputsAreNotStreamParallelized", (f) => set(streamed(f.input([4, 8]), 0)), "stream-on-input"],
    ["DoNotSupportPostOnStream", (f) => streamed(abs(f.input([4, 8, 32])), 0), "stream-on-host-unit"],
  ];

  it.each(refused)("%s", async (_, build, code) => {
    const f = new Fusion();
    f.output(build(f));
    await expect(MultiDeviceExecutor.create(f, { devices: 1, ...limits })).rejects.toThrow(`error[${code}]`);
  });
});
