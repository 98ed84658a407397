/** nvFuser's tests/cpp/test_multidevice_sharding.cpp: the reshapes and layouts, at small sizes. D is the number of devices. */
import { add, cast, permute, reshape, set, sum, type TensorView } from "@braid-compiler/braid";
import { cut, outputs, place, program, type SuiteProgram } from "./setup.ts";

/** x<d>, and all else from x. */
function fromInput(name: string, extents: (devices: number) => readonly number[], axis: number, op: Op): SuiteProgram {
  return program(name, "", (f, devices, mesh) => {
    const x = f.input(extents(devices));
    outputs(f, op(x, devices));
    place(mesh, x);
    cut(x, axis, devices);
  });
}
type Op = (x: TensorView, devices: number) => TensorView;

const reshapes: readonly SuiteProgram[] = [
  fromInput(
    "ViewWithSplit",
    (d) => [2 * d, 15],
    0,
    (x, d) => reshape(x, [2 * d, 3, 5]),
  ),
  fromInput(
    "ViewWithMerge",
    (d) => [2 * d, 3, 5],
    0,
    (x, d) => reshape(x, [2 * d, 15]),
  ),
  fromInput(
    "LoopShardedSplitReshapeIds",
    (d) => [2, 3, 8 * d],
    2,
    (x, d) => reshape(x, [2, 3, 2 * d, 4]),
  ),
  fromInput(
    "LoopShardedMergeReshapeIds",
    (d) => [2, 3, 2 * d, 4],
    2,
    (x, d) => reshape(x, [2, 3, 8 * d]),
  ),
  fromInput(
    "MultipleTransformReshape",
    (d) => [2 * d, 3, 8],
    0,
    (x, d) => reshape(x, [12 * d, 4]),
  ),
  program("ReshapeAllocationPermutation", "", (f, devices, mesh) => {
    const x = f.input([4, 2 * devices, 3]);
    const a = reshape(x, [4, 6 * devices]);
    const y = sum(a, [0]);
    outputs(f, y);
    place(mesh, x, a, y);
    for (const tensor of [x, a, y]) cut(tensor, 1, devices);
    x.setAllocationDomain([1, 2, 0, 3]);
    a.setAllocationDomain([1, 2, 0]);
  }),
  program("MultipleCompatibleReshapes", "", (f, devices, mesh) => {
    const x = f.input([1, 4, 6 * devices], "bfloat16");
    const a = reshape(x, [1, 4, devices, 6]);
    const b = reshape(x, [1, 4, devices, 6]);
    outputs(f, cast(add(a, b), "float"));
    place(mesh, x);
    cut(x, 2, devices);
  }),
  program("MultipleIncompatibleReshapes", "", (f, devices, mesh) => {
    const x = f.input([1, 4, 6 * devices], "bfloat16");
    outputs(f, reshape(x, [1, 4, devices, 6]), reshape(x, [1, 4, 2 * devices, 3]));
    place(mesh, x);
    cut(x, 2, devices);
  }),
];

const layouts: readonly SuiteProgram[] = [
  program(
    "Transpose",
    "",
    (f, devices, mesh) => {
      const x = f.input([null, null]);
      const y = permute(x, [1, 0]);
      outputs(f, y);
      place(mesh, x, y);
      cut(x, 0, devices);
      cut(y, 1, devices).setAllocationDomain([0, 1, 2]);
    },
    { shapes: (devices) => [[4 * devices, 6]] },
  ),
  program("LoopSplitWithReorder", "", (f, devices, mesh) => {
    const x = f.input([2, 3 * devices]);
    const y = set(x);
    outputs(f, y);
    place(mesh, x, y);
    cut(x, 1, devices).setAllocationDomain([1, 2, 0]);
    cut(y, 1, devices).setAllocationDomain([0, 1, 2]);
  }),
  program("PointwiseSchedulerReordering", "", (f, devices, mesh) => {
    const x = f.input([5, 3 * devices]);
    const y = add(x, 1);
    outputs(f, y);
    place(mesh, x, y);
    for (const tensor of [x, y]) cut(tensor, 1, devices).setAllocationDomain([1, 2, 0]);
  }),
];

export const multideviceViewPrograms: readonly SuiteProgram[] = [...reshapes, ...layouts];
