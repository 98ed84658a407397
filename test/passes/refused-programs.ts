/** Programs that the passes reject, each with an accepted program that computes the same: the tables of docs/passes. */
import {
  abs,
  add,
  DeviceMesh,
  Fusion,
  type LowerOptions,
  matmul,
  relu,
  set,
  slice,
  sum,
  type TensorView,
} from "@braid-compiler/braid";

export interface Written {
  readonly fusion: () => Fusion;
  readonly options?: LowerOptions;
}

export interface RefusedProgram {
  /** As the page of the pass has it. */
  readonly what: string;
  readonly instead: string;
  readonly devices: number;
  readonly code: string;
  readonly refused: readonly Written[];
  readonly rewrites: readonly Written[];
}

type Annotation = "DIDx" | "DIDy" | "Stream" | "Serial";

function on(mesh: DeviceMesh | null, tensor: TensorView, ...types: readonly Annotation[]): TensorView {
  if (mesh !== null) tensor.setDeviceMesh(mesh);
  types.forEach((type, i) => {
    if (type !== "Serial") tensor.axis(i).parallelize(type);
  });
  return tensor;
}

/** Splits axis 0 by each of `parts`, from the outside. */
function outerSplits(tensor: TensorView, ...parts: readonly number[]): TensorView {
  parts.forEach((count, axis) => tensor.outerSplit(axis, count));
  return tensor;
}

function fusion(build: (f: Fusion) => TensorView): () => Fusion {
  return () => {
    const f = new Fusion();
    f.output(build(f));
    return f;
  };
}

const two = DeviceMesh.range(2);
const others = new DeviceMesh([2, 3]);
const three = DeviceMesh.range(3);
const four = DeviceMesh.range(4);
const square = new DeviceMesh([
  [0, 1],
  [2, 3],
]);

const gather = fusion((f) => on(two, set(on(two, f.input([2, 4]), "DIDx")), "Stream"));
const summedProducts = fusion((f) => on(null, sum(matmul(f.input([4, 8, 2]), f.input([4, 2, 6])), [0]), "Stream"));
const withoutSets = { disablePass: ["insert-routes"] } as const;
const inOneStep = { disablePass: ["insert-routes"] } as const;

export const streamParallelType: readonly RefusedProgram[] = [
  {
    what: "a sharded axis becomes the Stream axis on another mesh",
    instead:
      "two set()s: one that moves the tensor to the other mesh (sharded if that mesh has as many devices, else whole), then the one with Stream",
    devices: 4,
    code: "point-to-point-unsupported",
    refused: [
      { fusion: fusion((f) => on(others, set(on(two, f.input([2, 4]), "DIDx")), "Stream")) },
      { fusion: fusion((f) => on(three, set(on(two, f.input([2, 4]), "DIDx")), "Stream")) },
    ],
    rewrites: [
      { fusion: fusion((f) => on(three, set(on(three, set(on(two, f.input([2, 4]), "DIDx")))), "Stream")) },
      {
        fusion: fusion((f) => on(others, set(on(others, set(on(two, f.input([2, 4]), "DIDx")), "DIDx")), "Stream")),
      },
    ],
  },
  {
    what: "Stream on a reduced axis of a sum that every device needs whole",
    instead: "no Stream there: one Allreduce, or one per chunk of another axis",
    devices: 4,
    code: "stream-on-reduction-axis",
    refused: [{ fusion: fusion((f) => on(four, sum(on(four, f.input([4, 6]), "DIDx"), [0]), "Stream")) }],
    rewrites: [
      { fusion: fusion((f) => on(four, sum(on(four, f.input([4, 6]), "DIDx"), [0]))) },
      { fusion: fusion((f) => on(four, sum(on(four, f.input([4, 6]), "DIDx"), [0]), "Serial", "Stream")) },
    ],
  },
  {
    what: "Stream on a reduced axis that is not sharded, or on a contracted axis",
    instead: "Stream on an axis that the output keeps, or `accumulate` for a contracted axis ([fold-sums](#fold-sums))",
    devices: 1,
    code: "stream-on-reduction-axis",
    refused: [
      { fusion: fusion((f) => on(null, sum(f.input([4, 6]), [0]), "Stream")) },
      { fusion: fusion((f) => on(null, matmul(f.input([4, 3]), f.input([3, 5])), "Serial", "Serial", "Stream")) },
    ],
    rewrites: [
      { fusion: fusion((f) => on(null, sum(f.input([4, 6]), [0]), "Serial", "Stream")) },
      { fusion: fusion((f) => on(null, matmul(f.input([4, 3]), f.input([3, 5])), "Stream")) },
    ],
  },
  {
    what: "Stream on the batch axis over which the results of a matmul are summed",
    instead: "the same with `accumulate` (`--schedule accumulate`), which adds the results chunk by chunk",
    devices: 1,
    code: "stream-on-reduction-axis",
    refused: [{ fusion: summedProducts }],
    rewrites: [{ fusion: summedProducts, options: { accumulate: true } }],
  },
  {
    what: "another DID type changes in the same op, where insert-routes is left out",
    instead: "two set()s, one per DID type",
    devices: 4,
    code: "resharding-unsupported",
    refused: [
      {
        fusion: fusion((f) => on(square, set(on(square, f.input([2, 2, 3]), "DIDy", "DIDx")), "Stream")),
        options: inOneStep,
      },
    ],
    rewrites: [
      {
        fusion: fusion((f) =>
          on(square, set(on(square, set(on(square, f.input([2, 2, 3]), "DIDy", "DIDx")), "DIDy")), "Stream"),
        ),
        options: inOneStep,
      },
    ],
  },
  {
    what: "an extent that is not the number of devices along the DID type",
    instead: "the devices as an axis of their own",
    devices: 3,
    code: "size-contradicts-mesh",
    refused: [{ fusion: fusion((f) => on(three, set(on(three, f.input([6, 4]), "DIDx")), "Stream")) }],
    rewrites: [{ fusion: fusion((f) => on(three, set(on(three, f.input([3, 2, 4]), "DIDx")), "Stream")) }],
  },
  {
    what: "`linear` with cuda or ucc, a protocol without cuda",
    instead: "`rotated` with cuda, `broadcast` with ucc, no protocol",
    devices: 2,
    code: "bad-option",
    refused: [
      { fusion: gather, options: { backend: "cuda", p2p: "linear" } },
      { fusion: gather, options: { backend: "ucc", p2p: "linear" } },
      { fusion: gather, options: { backend: "nccl", protocol: "put" } },
      { fusion: gather, options: { backend: "ucc", protocol: "get" } },
    ],
    rewrites: [
      { fusion: gather, options: { backend: "cuda", p2p: "rotated", protocol: "put" } },
      { fusion: gather, options: { backend: "ucc", p2p: "broadcast" } },
      { fusion: gather, options: { backend: "nccl" } },
    ],
  },
  {
    what: "`rotated` with ucc",
    instead: "`broadcast`, or another back end",
    devices: 2,
    code: "point-to-point-unsupported",
    refused: [{ fusion: gather, options: { backend: "ucc" } }],
    rewrites: [
      { fusion: gather, options: { backend: "ucc", p2p: "broadcast" } },
      { fusion: gather, options: { backend: "nccl" } },
      { fusion: gather, options: { backend: "cuda" } },
    ],
  },
  {
    what: "Stream on an input of the Fusion whose reader has none on that axis",
    instead: "Stream on the reader's output, whose loop slices the input",
    devices: 1,
    code: "stream-on-input",
    refused: [{ fusion: fusion((f) => set(on(null, f.input([4, 6]), "Stream"))), options: { propagate: false } }],
    rewrites: [{ fusion: fusion((f) => on(null, set(f.input([4, 6])), "Stream")) }],
  },
  {
    what: "Stream on an axis made by merge",
    instead: "Stream on one of the axes, without the merge",
    devices: 1,
    code: "stream-on-split-axis",
    refused: [{ fusion: fusion((f) => on(null, set(f.input([8, 6])).merge(0), "Stream")) }],
    rewrites: [{ fusion: fusion((f) => on(null, set(f.input([8, 6])), "Stream")) }],
  },
  {
    what: "Stream inside of a part that has no DID type",
    instead: "Stream on the outermost part (`outerSplit`)",
    devices: 1,
    code: "stream-on-split-axis",
    refused: [{ fusion: fusion((f) => on(null, set(f.input([8, 6])).split(0, 2), "Serial", "Stream")) }],
    rewrites: [{ fusion: fusion((f) => on(null, outerSplits(set(f.input([8, 6])), 4), "Stream")) }],
  },
  {
    what: "with `nvfuserLimits`: Stream on an axis made by split",
    instead: "the chunks as an axis of their own, or no `nvfuserLimits`",
    devices: 1,
    code: "stream-on-split-axis",
    refused: [
      { fusion: fusion((f) => on(null, set(f.input([8, 6])).split(0, 2), "Stream")), options: { nvfuserLimits: true } },
    ],
    rewrites: [
      { fusion: fusion((f) => on(null, set(f.input([4, 2, 6])), "Stream")), options: { nvfuserLimits: true } },
      { fusion: fusion((f) => on(null, set(f.input([8, 6])).split(0, 2), "Stream")) },
    ],
  },
  {
    what: "Stream on chunks of the devices' shares, where an operand is whole on every device and insert-routes is left out",
    instead: "the chunks outside of the shares: first `outerSplit` by their number, then by the devices",
    devices: 2,
    code: "stream-on-split-axis",
    refused: [
      {
        fusion: fusion((f) => {
          const x = on(two, f.input([8, 6]));
          return on(two, outerSplits(set(x), 2, 2), "DIDx", "Stream");
        }),
        options: inOneStep,
      },
    ],
    rewrites: [
      {
        fusion: fusion((f) => {
          const x = on(two, f.input([8, 6]));
          return on(two, outerSplits(set(x), 2, 2), "Stream", "DIDx");
        }),
        options: inOneStep,
      },
    ],
  },
  {
    what: "Stream on two axes of one tensor",
    instead: "Stream on one of them",
    devices: 1,
    code: "stream-repeated",
    refused: [{ fusion: fusion((f) => on(null, set(f.input([4, 6])), "Stream", "Stream")) }],
    rewrites: [{ fusion: fusion((f) => on(null, set(f.input([4, 6])), "Stream")) }],
  },
  {
    what: "with `nvfuserLimits`: Stream on the output of an op that is fused: unary ops, casts, broadcast, squeeze, permute, reshape",
    instead: "a set() after it, with Stream, or no `nvfuserLimits`",
    devices: 1,
    code: "stream-on-host-unit",
    refused: [
      { fusion: fusion((f) => on(null, abs(f.input([4, 6])), "Stream")), options: { nvfuserLimits: true } },
      { fusion: fusion((f) => on(null, relu(f.input([4, 6])), "Stream")), options: { nvfuserLimits: true } },
    ],
    rewrites: [
      { fusion: fusion((f) => on(null, set(abs(f.input([4, 6]))), "Stream")), options: { nvfuserLimits: true } },
      { fusion: fusion((f) => on(null, abs(f.input([4, 6])), "Stream")) },
    ],
  },
  {
    what: "Stream on M or N of a matmul with batched operands",
    instead: "Stream on a batch axis",
    devices: 1,
    code: "stream-on-matmul-axis",
    refused: [{ fusion: fusion((f) => on(null, matmul(f.input([3, 4, 2]), f.input([3, 2, 5])), "Serial", "Stream")) }],
    rewrites: [{ fusion: fusion((f) => on(null, matmul(f.input([3, 4, 2]), f.input([3, 2, 5])), "Stream")) }],
  },
  {
    what: "Stream on an axis that a slice cuts",
    instead: "a set() after it, with Stream",
    devices: 1,
    code: "stream-on-cut-axis",
    refused: [{ fusion: fusion((f) => on(null, slice(f.input([8, 4]), [1, 0], [7, 4]), "Stream")) }],
    rewrites: [{ fusion: fusion((f) => on(null, set(slice(f.input([8, 4]), [1, 0], [7, 4])), "Stream")) }],
  },
];

/** Rejected by the checks before the first rewrite. */
export const checked: readonly RefusedProgram[] = [
  {
    what: "a DID type on an axis made by merge",
    instead: "one logical axis in place of the merged ones, split into one part per device",
    devices: 4,
    code: "did-on-merged-axis",
    refused: [
      {
        fusion: fusion((f) => {
          const x = on(four, f.input([2, 4]));
          on(four, x.merge(0).split(0, 4, { inner: false }), "DIDx");
          return on(four, set(x));
        }),
      },
    ],
    rewrites: [
      {
        fusion: fusion((f) => {
          const x = on(four, f.input([8]));
          on(four, x.split(0, 4, { inner: false }), "DIDx");
          return on(four, set(x));
        }),
      },
    ],
  },
  {
    what: "a mesh on some tensors only, or a DID type without one",
    instead: "a mesh on an input or a weight (with `--schedule propagate=false`: on every tensor)",
    devices: 2,
    code: "mesh-missing",
    refused: [
      { fusion: fusion((f) => set(on(two, f.input([2, 4]), "DIDx"))), options: { propagate: false } },
      {
        fusion: fusion((f) => matmul(on(null, f.input([2, 3, 4]), "DIDx"), f.input([4, 2]))),
        options: { propagate: false },
      },
    ],
    rewrites: [{ fusion: fusion((f) => on(two, set(on(two, f.input([2, 4]), "DIDx")))) }],
  },
];

export const convertOpToCommunication: readonly RefusedProgram[] = [
  {
    what: "an op that computes and reshards",
    instead: "a set() between the two shardings",
    devices: 2,
    code: "resharding-unsupported",
    refused: [
      {
        fusion: fusion((f) => {
          const x = on(two, f.input([2, 4]), "DIDx");
          return on(two, add(x, x));
        }),
        options: withoutSets,
      },
    ],
    rewrites: [
      {
        fusion: fusion((f) => {
          const x = on(two, f.input([2, 4]), "DIDx");
          const whole = on(two, set(x));
          return on(two, add(whole, whole));
        }),
        options: withoutSets,
      },
    ],
  },
];
