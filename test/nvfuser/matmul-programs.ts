/** nvFuser's tests/python/multidevice/test_matmul.py: the Fusions, at small sizes. d is the number of devices. */
import { add, broadcast, cast, DeviceMesh, linear, matmul, mul, permute, relu } from "@braid-compiler/braid";
import { cut, outputs, place, program, type SuiteProgram, whole } from "./setup.ts";

export const matmulPrograms: readonly SuiteProgram[] = [
  program("test_linear_logical_split", "", (f, devices, mesh) => {
    const [x, w, b] = [f.input([2, 3, 4]), f.input([devices, 5, 4]), f.input([devices, 5])];
    // The weight has an axis of devices, which linear does not take.
    const weights = broadcast(permute(w, [0, 2, 1]), [false, true, false, false]);
    const products = matmul(broadcast(x, [true, false, false, false]), weights);
    outputs(f, add(products, broadcast(b, [false, true, true, false])));
    place(mesh, x, w, b);
    whole(w, 0);
    whole(b, 0);
  }),
  program(
    "test_column_parallel_linear",
    "",
    (f, devices, mesh) => {
      const [x, w, b] = [f.input([null, null, 5]), f.input([3 * devices, 5]), f.input([3 * devices])];
      outputs(f, linear(x, w, b));
      place(mesh, x, w, b);
      cut(w, 0, devices);
      cut(b, 0, devices);
    },
    { shapes: (devices) => [[2, 4, 5], [3 * devices, 5], [3 * devices]] },
  ),
  program(
    "test_row_parallel_linear",
    "Allreduce 1",
    (f, devices, mesh) => {
      const [x, w] = [f.input([null, null, 3 * devices]), f.input([4, 3 * devices])];
      outputs(f, linear(x, w));
      place(mesh, x, w);
      cut(x, 2, devices);
      cut(w, 1, devices);
    },
    {
      shapes: (devices) => [
        [2, 4, 3 * devices],
        [4, 3 * devices],
      ],
    },
  ),
  program("test_row_parallel_linear_with_bias", "Allreduce 1", (f, devices, mesh) => {
    const [x, w, b] = [f.input([2, 3, 5 * devices]), f.input([5, 5 * devices]), f.input([5])];
    outputs(f, linear(x, w, b));
    place(mesh, x, w, b);
    cut(x, 2, devices);
    cut(w, 1, devices);
  }),
  program(
    "test_linear_reduce_scatter",
    "ReduceScatter 1",
    (f, devices, mesh) => {
      const x = f.input([null, 5 * devices, 7 * devices], "bfloat16");
      const [w, b] = [f.input([null, 7 * devices], "bfloat16"), f.input([7], "bfloat16")];
      const y = linear(x, w, b);
      outputs(f, y);
      place(mesh, x, w, b, y);
      cut(x, 2, devices);
      cut(w, 1, devices);
      cut(y, 3, devices);
      cut(y, 1, devices);
    },
    { shapes: (devices) => [[3, 5 * devices, 7 * devices], [7, 7 * devices], [7]], setting: { rounds: true } },
  ),
  program(
    "test_column_parallel_matmul",
    "",
    (f, devices, mesh) => {
      const [x, w] = [f.input([null, null, 5]), f.input([5, 3 * devices])];
      const y = matmul(x, w);
      outputs(f, y);
      place(mesh, x, w, y);
      cut(w, 1, devices);
      cut(y, 2, devices);
    },
    {
      shapes: (devices) => [
        [2, 4, 5],
        [5, 3 * devices],
      ],
    },
  ),
  program("test_row_parallel_matmul", "Allreduce 1", (f, devices, mesh) => {
    const [x, w] = [f.input([4, 8 * devices], "half"), f.input([8 * devices, 8], "half")];
    outputs(f, matmul(x, w));
    place(mesh, x, w);
    cut(x, 1, devices);
    cut(w, 0, devices);
  }),
  program(
    "test_issue4729",
    "Allreduce 1",
    (f, devices, mesh) => {
      const shape = [1, 1, 3 * devices];
      const [x, y] = [f.input(shape, "bfloat16"), f.input(shape, "bfloat16")];
      const w = f.input([2, 3 * devices], "bfloat16");
      outputs(f, linear(cast(mul(cast(x, "float"), cast(y, "float")), "bfloat16"), w));
      place(mesh, x, y, w);
      cut(x, 2, devices);
      cut(y, 2, devices);
      cut(w, 1, devices);
    },
    { setting: { rounds: true } },
  ),
  program(
    "test_sequence_parallel_linear",
    // The weight and the bias: the rows stay where they are.
    "Allgather 2",
    (f, devices, mesh) => {
      const [x, w, b] = [f.input([null, null, 5]), f.input([4 * devices, 5]), f.input([4 * devices])];
      const y = linear(x, w, b);
      outputs(f, y);
      place(mesh, x, w, b, y);
      cut(x, 1, devices);
      cut(w, 0, devices);
      cut(b, 0, devices);
      cut(y, 1, devices);
    },
    { shapes: (devices) => [[2, 6 * devices, 5], [4 * devices, 5], [4 * devices]] },
  ),
  program(
    "test_data_and_tensor_parallel_mlp",
    "Allreduce 2",
    (f, devices) => {
      const tensorParallel = 2;
      const dataParallel = devices / tensorParallel;
      const mesh = new DeviceMesh(Array.from({ length: dataParallel }, (_, i) => [2 * i, 2 * i + 1]));
      const x = f.input([7 * dataParallel, 5, 3]);
      const [up, down] = [f.input([12 * tensorParallel, 3]), f.input([3, 12 * tensorParallel])];
      outputs(f, linear(relu(linear(x, up)), down));
      place(mesh, x, up, down);
      cut(x, 0, dataParallel, "DIDy");
      cut(up, 0, tensorParallel);
      cut(down, 1, tensorParallel);
    },
    { devices: [4] },
  ),
];
