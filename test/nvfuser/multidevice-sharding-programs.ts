/** nvFuser's tests/cpp/test_multidevice_sharding.cpp: the Fusions, at small sizes. D is the number of devices. */
import {
  add,
  broadcast,
  cast,
  cat,
  div,
  expand,
  layerNorm,
  linear,
  mul,
  relu,
  reshape,
  rsqrt,
  set,
  slice,
  sum,
  uniform,
  varMean,
} from "@braid-compiler/braid";
import { cut, outputs, place, program, type SuiteProgram, whole } from "./setup.ts";
import { multideviceViewPrograms } from "./multidevice-view-programs.ts";

const axes = [0, 1];
const extentsOf = (extents: readonly number[], symbolic: boolean): readonly (number | null)[] =>
  symbolic ? extents.map(() => null) : extents;

const reductions: readonly SuiteProgram[] = [false, true].flatMap((symbolic) =>
  axes.flatMap((axis) => {
    const unsharded = (devices: number): readonly number[] => [2, 3, 2, devices].with(axis, devices);
    const sharded = (devices: number): readonly number[] => [3, 2, 5].with(axis, devices);
    const sizes = symbolic ? "symbolic" : "concrete";
    return [
      program(
        `MultiDeviceReductionTest.UnshardedInput_ShardedOutput, ${sizes}, axis ${axis}`,
        "ReduceScatter 1",
        (f, devices, mesh) => {
          const x = f.input(extentsOf(unsharded(devices), symbolic));
          const a = set(x);
          const b = add(a, a);
          const c = sum(b, [axis]);
          outputs(f, a, b, c);
          place(mesh, x, a, b, c);
          for (const tensor of [a, b]) whole(tensor, axis);
          whole(c, -1);
        },
        { shapes: (devices) => [unsharded(devices)] },
      ),
      program(
        `MultiDeviceReductionTest.ShardedInput_ReplicatedOutput, ${sizes}, axis ${axis}`,
        "Allgather 1",
        (f, devices, mesh) => {
          const x = f.input(extentsOf(sharded(devices), symbolic));
          const a = set(x);
          const b = add(a, a);
          outputs(f, a, b);
          place(mesh, x, a, b);
          whole(x, axis);
        },
        { shapes: (devices) => [sharded(devices)] },
      ),
    ];
  }),
);

/** InsertReshardingTest.Execute: axis 1 of pairs of tensors on the devices, in all combinations. */
const combinations: readonly (readonly [flags: readonly [boolean, boolean, boolean], communications: string])[] = [
  [[false, false, false], ""],
  [[false, false, true], "Allreduce 1, Allgather 1"],
  [[false, true, false], "Allgather 1"],
  [[false, true, true], "Allreduce 1, Allgather 1"],
  [[true, false, false], "Allgather 1"],
  [[true, false, true], "Allgather 1, Allreduce 1"],
  [[true, true, false], "Allgather 2"],
  [[true, true, true], "Allreduce 1"],
];

const inserted: readonly SuiteProgram[] = combinations.map(([[ends, square, middle], communications]) =>
  program(
    `InsertReshardingTest.Execute, ${[ends, square, middle].map(Number).join("")}`,
    communications,
    (f, devices, mesh) => {
      const x = f.input([2, devices, 5]);
      const a = mul(x, x);
      const b = add(x, a);
      const c = sum(b, [1]);
      const d = broadcast(c, [false, true, false]);
      const y = mul(b, d);
      outputs(f, a, y);
      place(mesh, x, a, b, c, d, y);
      if (ends) for (const tensor of [x, y]) whole(tensor, 1);
      if (square) whole(a, 1);
      if (middle) for (const tensor of [b, c]) whole(tensor, 1);
    },
  ),
);

const others: readonly SuiteProgram[] = [
  program("Reduction", "Allreduce 1", (f, devices, mesh) => {
    const x = f.input([devices, 4]);
    outputs(f, sum(x, [0]));
    place(mesh, x);
    whole(x, 0);
  }),
  program("Slice", "", (f, devices, mesh) => {
    const x = f.input([devices, 8, 8]);
    outputs(f, slice(x, [0, 0, 0], [devices, 8, 4]), slice(x, [0, 0, 4], [devices, 8, 8]));
    place(mesh, x);
    whole(x, 0);
  }),
  program(
    "BackpropMeshes",
    "",
    (f, devices, mesh) => {
      const [x, seed] = [f.input([devices, null]), f.input([], "int64")];
      outputs(f, add(x, uniform(seed, x.extents)));
      place(mesh, x);
      whole(x, 0);
    },
    { shapes: (devices) => [[devices, 4], []] },
  ),
  program("DivideBySum", "", (f, devices, mesh) => {
    const x = f.input([2, 3 * devices, 5, 5]);
    // A sum of squares, since a sum near 0 leaves the quotient without a bound.
    const total = add(sum(mul(x, x), [3]), 1);
    outputs(f, div(x, broadcast(total, [false, false, false, true])));
    place(mesh, x);
    cut(x, 1, devices);
  }),
  program("LayerNorm", "", (f, _, mesh) => {
    const x = f.input([4, 3, 8]);
    const { mean, variance } = varMean(x, [2], 0);
    outputs(f, layerNorm(x), mean, rsqrt(add(variance, 1e-5)));
    place(mesh, x);
  }),
  program("Issue2758", "ReduceScatter 1", (f, devices, mesh) => {
    const x = f.input([devices, devices, 4]);
    const y = sum(x, [0]);
    outputs(f, add(y, devices));
    place(mesh, x, y);
    whole(x, 0);
    whole(y, 1);
  }),
  ...[false, true].map((sharded) =>
    program(`MultiDeviceBroadcastTest.Expanded, ${sharded}`, "", (f, devices, mesh) => {
      const row = f.input([1, 4]);
      const x = expand(row, [3 * devices, 4]);
      const y = set(x);
      outputs(f, y);
      place(mesh, row, x, y);
      if (sharded) for (const tensor of [x, y]) cut(tensor, 0, devices);
    }),
  ),
  program("BiasAddRelu", "", (f, devices, mesh) => {
    const [x, bias] = [f.input([2, 4, 3 * devices]), f.input([3 * devices])];
    outputs(f, relu(add(x, broadcast(bias, [true, true, false]))));
    place(mesh, x, bias);
    cut(x, 2, devices);
    cut(bias, 0, devices);
  }),
  program("AliasingRetainsSharding", "", (f, devices, mesh) => {
    const x = f.input([3 * devices]);
    const a = add(x, x);
    outputs(f, a, set(a));
    place(mesh, x);
    cut(x, 0, devices);
  }),
  program("DecomposeRowParallelLinearWithBias", "Allreduce 1", (f, devices, mesh) => {
    const x = f.input([2, 3, 5 * devices], "bfloat16");
    const w = f.input([5, 5 * devices], "bfloat16");
    const b = f.input([5], "bfloat16");
    outputs(f, cast(linear(x, w, b), "float"));
    place(mesh, x, w, b);
    cut(x, 2, devices);
    cut(w, 1, devices);
  }),
  program("OuterReductionShardedInnerDimension", "", (f, devices, mesh) => {
    const inputs = [0, 1, 2].map(() => f.input([1, 4, 2 * devices, 3], "bfloat16"));
    const rows = reshape(cat(inputs, -1), [1, 4, 18 * devices]);
    outputs(f, cast(sum(cast(rows, "float"), [0, 1]), "bfloat16"));
    place(mesh, ...inputs);
    for (const x of inputs) cut(x, 2, devices);
  }),
];

export const multideviceShardingPrograms: readonly SuiteProgram[] = [
  ...reductions,
  ...inserted,
  ...multideviceViewPrograms,
  ...others,
];
