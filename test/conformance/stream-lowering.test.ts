/**
 * nvFuser's test_host_ir_stream_lowering.cpp, the MultiDeviceExecutor twins: Fusions on one device whose Stream axes become
 * loops. The statement kinds are nvFuser's; results are compared with the oracle. Errors: test/fixtures/stream-parallel-type.
 */
import { describe, expect, it } from "vitest";
import { add, Fusion, lower, matmul, set, sum, type TensorView } from "braid";
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

describe.each(cases)("$name", ({ build, kinds }) => {
  const make = (): Fusion => {
    const f = new Fusion();
    f.output(build(f));
    return f;
  };

  it("has nvFuser's top-level statements", () => {
    expect(lower(make()).body.map((statement) => statement.kind)).toEqual(kinds);
    const withoutFrees = kinds.filter((kind) => kind !== "Deallocate");
    expect(lower(make(), { deallocate: false }).body.map((statement) => statement.kind)).toEqual(withoutFrees);
  });

  it.each([1, 3, 8])("gives the oracle's result on %i streams", async (streams) => {
    await expectOracle(make(), { devices: 1, streams });
  });
});
