/**
 * nvFuser's tests/python/multidevice/test_multidevice.py, test_communication.py and test_dtensor.py: the Fusions, at
 * small sizes. d is the number of devices.
 */
import {
  add,
  broadcast,
  cast,
  DeviceMesh,
  expand,
  gradients,
  linear,
  permute,
  relu,
  sdpa,
  sdpaBackward,
  set,
  squeeze,
  sum,
  type TensorView,
  varMean,
} from "@braid-compiler/braid";
import { cut, outputs, place, program, type SuiteProgram, whole } from "./setup.ts";

/** A mesh of d / 2 rows of two devices. */
const inPairs = (d: number): DeviceMesh => DeviceMesh.ofShape([d / 2, 2]);

/** Attention and its gradients, where `shape` is of q, k, v and the gradient in the order BHSE, and `heads` its axis of heads. */
function attention(name: string, shapeOf: (d: number) => readonly number[], heads: number): readonly SuiteProgram[] {
  return ["BHSE", "BSHE"].map((format) =>
    program(
      `${name}, ${format}`,
      "",
      (f, d, mesh) => {
        const shape = shapeOf(d);
        const order = shape.map((_, axis) => axis);
        // In BSHE the axes of heads and of tokens change places in memory.
        if (format === "BSHE") order.splice(-3, 2, shape.length - 2, shape.length - 3);
        const inputs = Array.from({ length: 4 }, () => f.input(order.map((axis) => shape[axis] ?? 0)));
        const [q, k, v, g] = inputs.map((x) => (format === "BSHE" ? permute(x, order) : x));
        if (q === undefined || k === undefined || v === undefined || g === undefined) return;
        const options = { causal: "topLeft" } as const;
        const results = sdpa(q, k, v, options);
        const found = sdpaBackward(g, q, k, v, results, options);
        outputs(f, results.output, found.dq, found.dk, found.dv);
        place(mesh, ...inputs);
        for (const x of inputs) cut(x, order.indexOf(heads), d);
      },
      { setting: { rounds: true } },
    ),
  );
}

const multidevice: readonly SuiteProgram[] = [
  program("test_pointwise", "Allgather 1", (f, d, mesh) => {
    const x = f.input([d, 4]);
    const y = relu(x);
    const z = add(y, y);
    outputs(f, z);
    place(mesh, x, y, z);
    whole(x, 0);
  }),
  program(
    "test_pointwise_vectorization",
    "",
    (f, d) => {
      const x = f.input([(3 * d) / 4, 8, 10, 10, 2], "bfloat16");
      const y = set(x);
      outputs(f, y);
      for (const tensor of [x, y]) {
        place(DeviceMesh.ofShape([d / 4, 2, 2]), tensor);
        whole(tensor, 4, "DIDy");
        cut(tensor, 3, 2);
        cut(tensor, 0, d / 4, "DIDz");
      }
    },
    { devices: [4, 8] },
  ),
  ...attention("test_sdpa", (d) => [d, 2, 4 / d, 8, 16], 0),
  ...attention("test_sdpa_loop_split", () => [2, 4, 8, 16], 1),
  program("test_privatize_squeeze", "Allreduce 1", (f, d, mesh) => {
    const x = f.input([3 * d, 5, 6], "bfloat16");
    const y = cast(squeeze(broadcast(x, [true, false, false, false]), [0]), "float");
    outputs(f, sum(y, [0]), sum(y, [1]));
    place(mesh, x);
    cut(x, 0, d);
  }),
  program("test_inner_reduction", "", (f, d, mesh) => {
    const x = f.input([3 * d, 5]);
    outputs(f, sum(x, [1]));
    place(mesh, x);
    cut(x, 0, d);
  }),
  program("test_insert_resharding_after", "Allgather 1", (f, d, mesh) => {
    const x = f.input([3 * d, 5]);
    const y = relu(x);
    outputs(f, y);
    place(mesh, x, y);
    cut(x, 0, d);
  }),
  program(
    "test_welford",
    "",
    (f, d, mesh) => {
      const x = f.input([1, 2 * d, 12]);
      const { mean, variance } = varMean(x, [2], 0);
      outputs(f, variance, mean);
      place(mesh, x);
      cut(x, 1, d);
    },
    { setting: { rounds: true } },
  ),
  program("test_binary", "", (f, d, mesh) => {
    const [x, y] = [f.input([2 * d, 3], "half"), f.input([2 * d, 3], "half")];
    outputs(f, add(x, y));
    place(mesh, x, y);
    cut(y, 0, d);
  }),
  program(
    "test_reduction_with_2d_mesh",
    "Allreduce 1",
    (f, d) => {
      const x = f.input([d, 6]);
      outputs(f, sum(x, [1]));
      place(inPairs(d), x);
      cut(x, 0, d / 2, "DIDy");
      cut(x, -1, 2);
    },
    { devices: [2, 4] },
  ),
];

const communication: readonly SuiteProgram[] = [
  program("test_allgather", "Allgather 1", (f, d, mesh) => {
    const x = f.input([4 * d]);
    const y = set(x);
    outputs(f, y);
    place(mesh, x, y);
    cut(x, 0, d);
  }),
  program(
    "test_allgather_2d",
    "Allgather 1",
    (f, d) => {
      const x = f.input([d, 6]);
      const y = set(x);
      outputs(f, y);
      for (const tensor of [x, y]) {
        place(inPairs(d), tensor);
        cut(tensor, 0, d / 2, "DIDy");
      }
      cut(x, 2, 2);
    },
    { devices: [2, 4] },
  ),
  program("test_allgather_expanded_broadcast", "Allgather 1", (f, d, mesh) => {
    const x = f.input([d]);
    const expanded = expand(broadcast(x, [false, true]), [d, 3]);
    const y = set(expanded);
    outputs(f, y);
    place(mesh, x, expanded, y);
    whole(x, 0);
    whole(expanded, 0);
  }),
  program("test_allreduce", "Allreduce 1", (f, d, mesh) => {
    const x = f.input([2, 3 * d, 5]);
    outputs(f, sum(x, [1]));
    place(mesh, x);
    cut(x, 1, d);
  }),
  ...[["test_reduce_scatter"], ["test_reduce_scatter_noncontiguous", 3]].map(([name, ...middle]) =>
    program(String(name), "ReduceScatter 1", (f, d, mesh) => {
      const x = f.input([d, ...middle.map(Number), 4 * d]);
      const y = sum(x, [0]);
      outputs(f, y);
      place(mesh, x, y);
      whole(x, 0);
      cut(y, -1, d);
    }),
  ),
  ...[
    [0, 1],
    [1, 0],
  ].map(([from = 0, to = 0]) =>
    program(`test_alltoall, ${from} to ${to}`, "AllToAll 1", (f, d, mesh) => {
      const x = f.input([d, 3 * d], "half");
      const y = set(x);
      outputs(f, y);
      place(mesh, x, y);
      cut(x, from, d);
      cut(y, to, d);
    }),
  ),
];

/** A linear of x [2, 3, ..], its output and its gradients: of DTensors that are placed like x and w. */
function dtensorLinear(
  name: string,
  communications: string,
  build: (
    f: Parameters<Parameters<typeof program>[2]>[0],
    d: number,
    mesh: DeviceMesh,
  ) => readonly [x: TensorView, w: TensorView, splitsOutput: boolean],
): SuiteProgram {
  return program(name, communications, (f, d, mesh) => {
    const [x, w, split] = build(f, d, mesh);
    const y = linear(x, w);
    const g = f.input(y.extents, "bfloat16");
    place(mesh, x, w, g);
    if (split) cut(g, -1, d);
    const found = gradients(f, { of: [y], cotangents: [g], wrt: [x, w] });
    outputs(f, y, ...found.filter((tensor) => tensor !== null));
  });
}

const dtensor: readonly SuiteProgram[] = [
  program("test_plus_one", "", (f, d, mesh) => {
    const x = f.input([d, 4]);
    outputs(f, add(x, 1));
    place(mesh, x);
    cut(x, 0, d);
  }),
  dtensorLinear("test_column_parallel_linear", "Allreduce 1", (f, d, mesh) => {
    const [x, w] = [f.input([2, 3, 5], "bfloat16"), f.input([5 * d, 5], "bfloat16")];
    place(mesh, x, w);
    return [x, cut(w, 0, d), true];
  }),
  dtensorLinear("test_row_parallel_linear", "Allreduce 1", (f, d, mesh) => {
    const [x, w] = [f.input([2, 3, 5 * d], "bfloat16"), f.input([5, 5 * d], "bfloat16")];
    place(mesh, x, w);
    return [cut(x, -1, d), cut(w, -1, d), false];
  }),
];

export const pythonPrograms: readonly SuiteProgram[] = [...multidevice, ...communication, ...dtensor];
