/**
 * nvFuser's test_host_ir_stream_lowering.cpp: computations on one device whose Stream axes become loops, or are refused.
 * Each is a Fusion that is lowered, and a host program with the computation at top level that only the pass
 * stream-parallel-type changes. The statement kinds are nvFuser's; results are compared with the oracle. The whole
 * messages: test/fixtures/stream-parallel-type/error-*.
 */
import { describe, expect, it } from "vitest";
import {
  abs,
  add,
  Fusion,
  type HostProgram,
  HostProgramBuilder,
  lower,
  matmul,
  MultiDeviceExecutor,
  set,
  sum,
  type TensorView,
} from "@braid-compiler/braid";
import { passes, runPass } from "@braid-compiler/braid/internals";
import { diagnosticOf } from "../ir/expect-diagnostic.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { expectReference } from "../support/expect-reference.ts";
import { referenceOf } from "../support/reference.ts";

/** What Fusions and host programs are built with. */
interface Ops {
  input: (shape: readonly number[]) => TensorView;
  set: (x: TensorView) => TensorView;
  add: (a: TensorView, b: TensorView) => TensorView;
  sum: (x: TensorView, axes: readonly number[]) => TensorView;
  matmul: (a: TensorView, b: TensorView) => TensorView;
}

type Build = (ops: Ops) => TensorView;

const loop = ["Allocate", "GetCurrentStream", "ForLoop", "ForLoop"];

interface Case {
  readonly name: string;
  readonly build: Build;
  readonly kinds: readonly string[];
}

const cases: readonly Case[] = [
  { name: "SingleSetOp", build: (o) => streamed(o.set(o.input([4, 8])), 0), kinds: loop },
  { name: "SingleSetOpNonOutermost", build: (o) => streamed(o.set(o.input([4, 8])), 1), kinds: loop },
  { name: "SingleBinaryOp", build: (o) => streamed(o.add(o.input([4, 4]), o.input([4, 4])), 0), kinds: loop },
  {
    name: "TwoSetOps",
    build: (o) => streamed(o.set(streamed(o.set(o.input([4, 8])), 0)), 0),
    kinds: ["Allocate", ...loop, "Deallocate"],
  },
  {
    name: "ThreeSetOpsWithDisjointsForLoops",
    build: (o) => streamed(o.set(o.set(streamed(o.set(o.input([4, 8])), 0))), 0),
    kinds: [...loop, "Set", "Deallocate", ...loop, "Deallocate"],
  },
  { name: "Reduction", build: (o) => streamed(o.sum(o.input([4, 8, 2]), [2]), 0), kinds: loop },
  { name: "Matmul_M", build: (o) => streamed(o.matmul(o.input([8, 4]), o.input([4, 2])), 0), kinds: loop },
  { name: "BatchedMatmul", build: (o) => streamed(o.matmul(o.input([16, 8, 4]), o.input([4, 2])), 0), kinds: loop },
  { name: "Matmul_N", build: (o) => streamed(o.matmul(o.input([8, 4]), o.input([4, 2])), 1), kinds: loop },
];

function streamed(tensor: TensorView, axis: number): TensorView {
  tensor.axis(axis).parallelize("Stream");
  return tensor;
}

function fusionOf(build: Build): Fusion {
  const f = new Fusion();
  f.output(build({ input: (shape) => f.input(shape), set, add, sum, matmul }));
  return f;
}

function hostOf(build: (h: HostProgramBuilder) => TensorView): HostProgram {
  const h = new HostProgramBuilder();
  h.output(build(h));
  return h.build();
}

const limits = { nvfuserLimits: true } as const;
const kindsOf = ({ body }: HostProgram): readonly string[] => body.map(({ kind }) => kind);
const looped = (host: HostProgram): HostProgram => runPass(passes.streamParallelType, host);

describe.each(cases)("$name", ({ build, kinds }) => {
  const withoutFrees = kinds.filter((kind) => kind !== "Deallocate");

  it("has nvFuser's top-level statements", () => {
    expect(kindsOf(lower(fusionOf(build), limits))).toEqual(kinds);
    expect(kindsOf(lower(fusionOf(build), { ...limits, deallocate: false }))).toEqual(withoutFrees);
    expect(kindsOf(looped(hostOf(build)))).toEqual(withoutFrees);
  });

  it.each([1, 3, 8])("gives the oracle's result on %i streams", async (streams) => {
    await expectOracle(fusionOf(build), { devices: 1, streams });
    await expectReference([looped(hostOf(build))], referenceOf(fusionOf(build)), { streams });
  });

  it("computes the same before the pass", async () => {
    await expectReference([hostOf(build)], referenceOf(fusionOf(build)));
  });
});

/** A Fusion that a host program runs on its tensors. */
function unit(build: (f: Fusion) => TensorView): Fusion {
  const f = new Fusion();
  f.output(build(f));
  return f;
}

it("makes loops around a host unit", async () => {
  const host = hostOf((h) => {
    const first = streamed(h.set(h.input([4, 8])), 0);
    const [second] = h.postOnStream(
      unit((f) => abs(f.input([null, null]))),
      [first],
    );
    return streamed(h.set(second ?? first), 0);
  });
  expect(kindsOf(looped(host))).toEqual([...loop, "PostOnStream", ...loop]);
  const reference = referenceOf(unit((f) => abs(f.input([4, 8]))));
  for (const streams of [1, 3, 8]) await expectReference([looped(host)], reference, { streams });
  await expectReference([host], reference);
});

describe("what is refused", () => {
  const refused: readonly (readonly [name: string, build: Build, code: string])[] = [
    ["Split", (o) => streamed(o.set(o.input([4, 8])).split(0, 2), 0), "stream-on-split-axis"],
    ["Merge", (o) => streamed(o.set(o.input([4, 8])).merge(0), 0), "stream-on-split-axis"],
    ["ReductionUnsupported", (o) => streamed(o.sum(o.input([4, 8]), [0]), 0), "stream-on-reduction-axis"],
    ["Matmul_K", (o) => streamed(o.matmul(o.input([8, 4]), o.input([4, 2])), 2), "stream-on-reduction-axis"],
    ["InputsAreNotStreamParallelized", (o) => o.set(streamed(o.input([4, 8]), 0)), "stream-on-input"],
  ];
  const ofExecutor = (f: Fusion): Promise<unknown> => MultiDeviceExecutor.create(f, { devices: 1, ...limits });
  const codeOfPass = (host: HostProgram): string =>
    diagnosticOf(() => runPass(passes.streamParallelType, host, limits)).code;

  it.each(refused)("%s", async (_, build, code) => {
    await expect(ofExecutor(fusionOf(build))).rejects.toThrow(`error[${code}]`);
    expect(codeOfPass(hostOf(build))).toBe(code);
  });

  it.each<[string, (x: TensorView) => TensorView]>([
    ["add and sum", (x) => sum(add(x, x), [1])],
    ["abs", abs],
  ])("DoNotSupportPostOnStream: %s", async (_, compute) => {
    const build = (f: Fusion): TensorView => streamed(compute(f.input([4, 8, 32])), 0);
    await expect(ofExecutor(unit((f) => streamed(abs(f.input([4, 8, 32])), 0)))).rejects.toThrow(
      "error[stream-on-host-unit]",
    );
    const host = hostOf((h) => h.postOnStream(unit(build), [h.input([4, 8, 32])])[0] ?? h.tensor([]));
    expect(codeOfPass(host)).toBe("stream-on-host-unit");
  });
});
