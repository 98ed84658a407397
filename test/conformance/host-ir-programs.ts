/**
 * nvFuser's test_host_irs.cpp: host programs of one device, each with a Fusion that says in one line what it computes.
 */
import {
  add,
  div,
  Fusion,
  type HostProgram,
  HostProgramBuilder,
  linear,
  matmul,
  mul,
  reshape,
  select,
  set,
  slice,
  sub,
  sum,
  type TensorView,
} from "@braid-compiler/braid";

export interface HostIrProgram {
  readonly name: string;
  readonly build: () => HostProgram;
  readonly reference: () => Fusion;
  readonly scalars?: Readonly<Record<string, number>>;
  readonly streams?: number;
}

/** Inputs of the given shapes; `body` returns the output or outputs. */
function program(
  shapes: readonly (readonly number[])[],
  body: (h: HostProgramBuilder, ...inputs: TensorView[]) => TensorView | readonly TensorView[],
): () => HostProgram {
  return () => {
    const h = new HostProgramBuilder();
    const outputs = body(h, ...shapes.map((shape) => h.input(shape)));
    for (const output of "id" in outputs ? [outputs] : outputs) h.output(output);
    return h.build();
  };
}

function fusion(
  shapes: readonly (readonly (number | null)[])[],
  body: (...inputs: TensorView[]) => TensorView | readonly TensorView[],
): () => Fusion {
  return () => {
    const f = new Fusion();
    const outputs = body(...shapes.map((shape) => f.input(shape)));
    for (const output of "id" in outputs ? [outputs] : outputs) f.output(output);
    return f;
  };
}

function only(tensors: readonly TensorView[]): TensorView {
  const [tensor] = tensors;
  if (tensor === undefined) throw new Error("no tensor");
  return tensor;
}

const cube = [4, 8, 3];
const doubled = fusion([[null, null, null]], (x) => add(x, x));
const rowSums = fusion([[null, null, null]], (x) => sum(x, [0]));
const doubledSums = fusion([[null, null, null]], (x) => sum(add(x, x), [0]));

const units: readonly HostIrProgram[] = [
  {
    name: "SingleFusion",
    build: program([cube], (h, x) => only(h.postOnStream(doubledSums(), [x]))),
    reference: fusion([cube], (x) => sum(add(x, x), [0])),
  },
  {
    name: "TwoFusions",
    build: program([cube], (h, x) => only(h.postOnStream(rowSums(), h.postOnStream(doubled(), [x])))),
    reference: fusion([cube], (x) => sum(add(x, x), [0])),
  },
  {
    // Two units read what the first makes, and the last joins them.
    name: "ThreeFusions",
    build: program([cube], (h, x) => {
      const once = only(h.postOnStream(doubled(), [x]));
      const twice = only(h.postOnStream(doubled(), [once]));
      const joined = fusion(
        [
          [null, null, null],
          [null, null, null],
        ],
        (a, b) => sum(mul(a, b), [0]),
      );
      return h.postOnStream(joined(), [once, twice]);
    }),
    reference: fusion([cube], (x) => sum(mul(add(x, x), add(add(x, x), add(x, x))), [0])),
  },
  {
    name: "PreAllocatedOutputs",
    build: program([cube], (h, x) => {
      const out = h.allocate(h.tensor(cube));
      h.postOnStream(doubled(), [x], [out]);
      return out;
    }),
    reference: fusion([cube], (x) => add(x, x)),
  },
];

const control: readonly HostIrProgram[] = [
  {
    // The accumulator is input and output; Fusions have no scalar inputs, so the loop picks its summand by the index.
    name: "ForLoops",
    build: program([[1], [8, 1]], (h, total, x) => {
      const unit = fusion([[null], [null]], (a, b) => add(a, b));
      h.forLoop({ start: 1, stop: 7, step: 2 }, (i) => {
        h.postOnStream(unit(), [total, h.select(x, 0, i)], [total]);
      });
      return total;
    }),
    reference: fusion([[1], [8, 1]], (total, x) =>
      add(add(add(total, select(x, 0, 1)), select(x, 0, 3)), select(x, 0, 5)),
    ),
  },
  ...[0, 1].map((predicate) => ({
    name: `IfThenElseTest.HostIr, predicate ${predicate}`,
    build: program([[3], [3]], (h, x, one) => {
      const unit = fusion([[null], [null]], (a, b) => add(a, b))();
      const addOne = (): void => void h.postOnStream(unit, [x, one], [x]);
      h.ifThenElse(
        h.scalars.named("predicate"),
        () => {
          addOne();
          addOne();
        },
        addOne,
      );
      return x;
    }),
    reference: fusion([[3], [3]], (x, one) => (predicate === 1 ? add(add(x, one), one) : add(x, one))),
    scalars: { predicate },
  })),
  ...[1, 4].flatMap((streams) =>
    [1, 8].map((iterations) => ({
      name: `SingleFusionMultipleStreams, ${streams} streams, ${iterations} iterations`,
      build: program([cube], (h, x) => {
        const outputs = Array.from({ length: iterations }, () => h.allocate(h.tensor([8, 3])));
        const caller = h.getCurrentStream();
        for (const [i, output] of outputs.entries()) {
          const worker = h.stream(h.scalars.mod(i, h.scalars.numberOfStreams));
          h.setCurrentStream(worker);
          h.synchronize(caller);
          h.postOnStream(doubledSums(), [x], [output]);
        }
        h.setCurrentStream(caller);
        for (let i = 0; i < streams; i++) h.synchronize(h.stream(i));
        return outputs;
      }),
      reference: fusion([cube], (x) => Array.from({ length: iterations }, () => sum(add(x, x), [0]))),
      streams,
    })),
  ),
];

const views: readonly HostIrProgram[] = [
  {
    name: "SlicingTensor",
    build: program([[32, 32]], (h, x) => h.slice(x, [0, 3], [32, 13])),
    reference: fusion([[32, 32]], (x) => slice(x, [0, 3], [32, 13])),
  },
  {
    name: "SelectHostIrTest.SelectingTensor",
    build: program([[8, 6]], (h, x) => h.selectOp(x, 1, 3)),
    reference: fusion([[8, 6]], (x) => select(x, 1, 3)),
  },
  {
    name: "HirAliasSelectHostIrTest.SelectingTensor",
    build: program([[8, 6]], (h, x) => h.select(x, 1, 3)),
    reference: fusion([[8, 6]], (x) => select(x, 1, 3)),
  },
  {
    name: "ViewTest.SimpleReshape",
    build: program([[32, 64]], (h, x) => h.reshape(h.reshape(x, [2048]), [64, 32])),
    reference: fusion([[32, 64]], (x) => reshape(x, [64, 32])),
  },
];

const products: readonly HostIrProgram[] = [
  {
    name: "MatmulHostIr",
    build: program(
      [
        [2, 4, 8],
        [2, 8, 6],
      ],
      (h, a, b) => h.matmul(a, b),
    ),
    reference: fusion(
      [
        [2, 4, 8],
        [2, 8, 6],
      ],
      (a, b) => matmul(a, b),
    ),
  },
  {
    name: "MatmulHostIrOut",
    build: program(
      [
        [2, 4, 8],
        [2, 8, 6],
      ],
      (h, a, b) => h.matmul(a, b, { out: h.allocate(h.tensor([2, 4, 6, { reduced: 8 }])) }),
    ),
    reference: fusion(
      [
        [2, 4, 8],
        [2, 8, 6],
      ],
      (a, b) => matmul(a, b),
    ),
  },
  ...["LinearHostIr", "LinearHostIrOut"].map((name) => ({
    name,
    build: program([[2, 4, 8], [6, 8], [6]], (h, x, w, bias) =>
      name === "LinearHostIr"
        ? h.linear(x, w, bias)
        : h.linear(x, w, bias, { out: h.allocate(h.tensor([2, 4, 6, { reduced: 8 }])) }),
    ),
    reference: fusion([[2, 4, 8], [6, 8], [6]], (x, w, bias) => linear(x, w, bias)),
  })),
];

const binaries = { add, sub, mul, div } as const;
const binaryNames = ["add", "sub", "mul", "div"] as const;

const elementwise: readonly HostIrProgram[] = [
  {
    name: "HirSetTest.HostIr",
    build: program([[8, 64]], (h, x) => h.set(x, { out: h.allocate(h.tensor([8, 64])) })),
    reference: fusion([[8, 64]], (x) => set(x)),
  },
  ...binaryNames.flatMap((op) =>
    [false, true].map((given) => ({
      name: `HirBinaryOpTest.${given ? "PreAllocatedOutputs" : "NonPreAllocatedOutputs"}, ${op}`,
      build: program(
        [
          [8, 6],
          [8, 6],
        ],
        (h, a, b) => h[op](a, b, given ? { out: h.allocate(h.tensor([8, 6])) } : {}),
      ),
      reference: fusion(
        [
          [8, 6],
          [8, 6],
        ],
        (a, b) => binaries[op](a, b),
      ),
    })),
  ),
];

const reductions: readonly HostIrProgram[] = [
  {
    name: "ReductionHostIrTest.Sum",
    build: program([[12]], (h, x) => h.sum(x, [0])),
    reference: fusion([[12]], (x) => sum(x, [0])),
  },
  {
    name: "HirReductionOpTest.PreAllocatedOutputs",
    build: program([[8, 64]], (h, x) => h.sum(x, [1], { out: h.allocate(h.tensor([8, { reduced: 64 }])) })),
    reference: fusion([[8, 64]], (x) => sum(x, [1])),
  },
  {
    name: "HirReductionOpTest.NonPreAllocatedOutputs",
    build: program([[8, 64]], (h, x) => h.sum(x, [1])),
    reference: fusion([[8, 64]], (x) => sum(x, [1])),
  },
];

const memory: readonly HostIrProgram[] = [
  ...(["global", "symmetric"] as const).map((kind) => ({
    name: kind === "global" ? "AllocationTest.HostIr" : "AllocationTest.SymmetricMemory",
    build: program([[8, 6]], (h, x) => {
      const scratch = h.allocate(h.tensor([8, 6], { memory: kind }));
      h.set(x, { out: scratch });
      return h.add(scratch, x);
    }),
    reference: fusion([[8, 6]], (x) => add(x, x)),
  })),
  {
    name: "AllocationTest.inHostForLoop",
    build: program([[4, 6]], (h, x) => {
      const y = h.allocate(h.tensor([4, 6]));
      h.forLoop(4, (i) => {
        const scratch = h.allocate(h.tensor([6]), { zeroInit: true });
        const row = h.select(x, 0, i);
        h.add(row, scratch, { out: scratch });
        h.add(scratch, row, { out: h.select(y, 0, i) });
        h.deallocate(scratch);
      });
      return y;
    }),
    reference: fusion([[4, 6]], (x) => add(x, x)),
  },
];

export const hostIrPrograms: readonly HostIrProgram[] = [
  ...units,
  ...control,
  ...views,
  ...products,
  ...elementwise,
  ...reductions,
  ...memory,
];
