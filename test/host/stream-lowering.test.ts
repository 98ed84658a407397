/**
 * nvFuser's test_host_ir_stream_lowering.cpp, the hand-built twins: a host program with computations at top level,
 * through the pass stream-parallel-type alone. The top-level statements are nvFuser's; the program runs with 1, 3 and 8
 * streams.
 */
import { describe, expect, it } from "vitest";
import { abs, add, Fusion, HostProgramBuilder, type HostProgram, sum, type TensorView } from "@braid-compiler/braid";
import { passes, runPass } from "@braid-compiler/braid/internals";
import { diagnosticOf } from "../ir/expect-diagnostic.ts";
import { counted, runPrograms } from "../record/run-programs.ts";

const loop = ["Allocate", "GetCurrentStream", "ForLoop", "ForLoop"];

interface Case {
  readonly build: (h: HostProgramBuilder) => TensorView;
  readonly inputs: readonly (readonly number[])[];
  /** Top-level statements after the pass. */
  readonly kinds: readonly string[];
  /** The result from the inputs' elements, in row-major order. */
  readonly expected: (...inputs: readonly (readonly number[])[]) => readonly number[];
}

function streamed(tensor: TensorView, axis: number): TensorView {
  tensor.axis(axis).parallelize("Stream");
  return tensor;
}

/** a [m, k] times b [k, n]. */
function product(a: readonly number[], b: readonly number[], [m, k, n]: readonly [number, number, number]): number[] {
  return Array.from({ length: m * n }, (_, i) => {
    let total = 0;
    for (let inner = 0; inner < k; inner++) {
      total += (a[Math.floor(i / n) * k + inner] ?? 0) * (b[inner * n + (i % n)] ?? 0);
    }
    return total;
  });
}

const same = (x: readonly number[] = []): readonly number[] => x;
const inputsOf = (h: HostProgramBuilder, ...shapes: readonly (readonly number[])[]): TensorView[] =>
  shapes.map((shape) => h.input(shape));

const cases: { readonly [name: string]: Case } = {
  SingleSetOp: {
    build: (h) => streamed(h.set(h.input([4, 8])), 0),
    inputs: [[4, 8]],
    kinds: loop,
    expected: same,
  },
  SingleSetOpNonOutermost: {
    build: (h) => streamed(h.set(h.input([4, 8])), 1),
    inputs: [[4, 8]],
    kinds: loop,
    expected: same,
  },
  SingleBinaryOp: {
    build: (h) => {
      const [a, b] = inputsOf(h, [4, 4], [4, 4]);
      return a && b ? streamed(h.add(a, b), 0) : h.tensor([]);
    },
    inputs: [
      [4, 4],
      [4, 4],
    ],
    kinds: loop,
    expected: (a = [], b = []) => a.map((value, i) => value + (b[i] ?? 0)),
  },
  TwoSetOps: {
    build: (h) => streamed(h.set(streamed(h.set(h.input([4, 8])), 0)), 0),
    inputs: [[4, 8]],
    kinds: ["Allocate", ...loop],
    expected: same,
  },
  ThreeSetOpsWithDisjointsForLoops: {
    build: (h) => streamed(h.set(h.set(streamed(h.set(h.input([4, 8])), 0))), 0),
    inputs: [[4, 8]],
    kinds: [...loop, "Set", ...loop],
    expected: same,
  },
  "loops around a host unit": {
    build: (h) => {
      const f = new Fusion();
      f.output(abs(f.input([null, null])));
      const first = streamed(h.set(h.input([4, 8])), 0);
      const [second] = h.postOnStream(f, [first]);
      return streamed(h.set(second ?? first), 0);
    },
    inputs: [[4, 8]],
    kinds: [...loop, "PostOnStream", ...loop],
    expected: (x = []) => x.map(Math.abs),
  },
  Reduction: {
    build: (h) => streamed(h.sum(h.input([4, 8, 2]), [2]), 0),
    inputs: [[4, 8, 2]],
    kinds: loop,
    expected: (x = []) => Array.from({ length: 32 }, (_, i) => (x[2 * i] ?? 0) + (x[2 * i + 1] ?? 0)),
  },
  Matmul_M: {
    build: (h) => streamed(h.matmul(h.input([8, 4]), h.input([4, 2])), 0),
    inputs: [
      [8, 4],
      [4, 2],
    ],
    kinds: loop,
    expected: (a = [], b = []) => product(a, b, [8, 4, 2]),
  },
  BatchedMatmul: {
    build: (h) => streamed(h.matmul(h.input([16, 8, 4]), h.input([4, 2])), 0),
    inputs: [
      [16, 8, 4],
      [4, 2],
    ],
    kinds: loop,
    expected: (a = [], b = []) => product(a, b, [128, 4, 2]),
  },
  Matmul_N: {
    build: (h) => streamed(h.matmul(h.input([8, 4]), h.input([4, 2])), 1),
    inputs: [
      [8, 4],
      [4, 2],
    ],
    kinds: loop,
    expected: (a = [], b = []) => product(a, b, [8, 4, 2]),
  },
};

function built(build: Case["build"]): HostProgram {
  const h = new HostProgramBuilder();
  h.output(build(h));
  return h.build();
}

describe.each(Object.entries(cases))("%s", (_, { build, inputs, kinds, expected }) => {
  const lowered = runPass(passes.streamParallelType, built(build));
  const values = inputs.map((shape, i) => counted(shape, (element) => ((element * 7 + i) % 11) - 5));
  const elements = values.map(({ data }) => Array.from(data, Number));

  it("has nvFuser's top-level statements", () => {
    expect(lowered.body.map(({ kind }) => kind)).toEqual(kinds);
  });

  it.each([1, 3, 8])("computes the same on %i streams", async (streams) => {
    const [[output] = []] = await runPrograms([lowered], { inputs: [values], streams });
    expect(Array.from(output?.data ?? [], Number)).toEqual(expected(...elements));
  });

  it("computes the same before the pass", async () => {
    const [[output] = []] = await runPrograms([built(build)], { inputs: [values] });
    expect(Array.from(output?.data ?? [], Number)).toEqual(expected(...elements));
  });
});

describe("what the pass refuses", () => {
  const refuse = (build: Case["build"]): string => {
    const program = built(build);
    return diagnosticOf(() => runPass(passes.streamParallelType, program, { nvfuserLimits: true })).code;
  };

  it("Split", () => {
    expect(refuse((h) => streamed(h.set(h.input([4, 8])).split(0, 2), 0))).toBe("stream-on-split-axis");
  });

  it("Merge", () => {
    expect(refuse((h) => streamed(h.set(h.input([4, 8])).merge(0), 0))).toBe("stream-on-split-axis");
  });

  it("ReductionUnsupported", () => {
    expect(refuse((h) => streamed(h.sum(h.input([4, 8]), [0]), 0))).toBe("stream-on-reduction-axis");
  });

  it("Matmul_K", () => {
    expect(refuse((h) => streamed(h.matmul(h.input([8, 4]), h.input([4, 2])), 2))).toBe("stream-on-reduction-axis");
  });

  it("InputsAreNotStreamParallelized", () => {
    expect(refuse((h) => h.set(streamed(h.input([4, 8]), 0)))).toBe("stream-on-input");
  });

  it.each<[string, (x: TensorView) => TensorView]>([
    ["add and sum", (x) => sum(add(x, x), [1])],
    ["abs", abs],
  ])("DoNotSupportPostOnStream: %s", (_, compute) => {
    const code = refuse((h) => {
      const f = new Fusion();
      f.output(streamed(compute(f.input([4, 8, 32])), 0));
      const [output] = h.postOnStream(f, [h.input([4, 8, 32])]);
      return output ?? h.tensor([]);
    });
    expect(code).toBe("stream-on-host-unit");
  });
});
