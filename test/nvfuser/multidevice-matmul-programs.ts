/** nvFuser's tests/cpp/test_multidevice_matmul.cpp: the Fusions, at small sizes. D is the number of devices. */
import { broadcast, cast, linear, matmul, mul, permute, reshape, set, sum } from "@braid-compiler/braid";
import { cut, outputs, place, program, type SuiteProgram, whole } from "./setup.ts";

const [inner, n, k] = [2, 3, 4];

/** A linear of a contraction that is spread over the devices. */
export const rowParallelLinear = program(
  "RowParallelLinear",
  "Allreduce 1",
  (f, devices, mesh) => {
    const [x, w] = [f.input([null, null, 12]), f.input([12, 12])];
    const y = linear(x, w);
    outputs(f, y);
    place(mesh, x, w, y);
    cut(x, 2, devices);
    cut(w, 1, devices);
    cut(y, 3, devices);
  },
  {
    shapes: () => [
      [2, 4, 12],
      [12, 12],
    ],
  },
);

export const multideviceMatmulPrograms: readonly SuiteProgram[] = [
  program("MulSum_LayoutTN_NoComms", "", (f, devices, mesh) => {
    const [a, b] = [f.input([devices, inner, k], "half"), f.input([n, k], "half")];
    const wideA = broadcast(a, [false, false, true, false]);
    const wideB = broadcast(b, [true, true, false, false]);
    const products = mul(wideA, wideB);
    const c = cast(sum(products, [3]), "float");
    outputs(f, c);
    place(mesh, a, b, wideA, products, c);
    for (const tensor of [a, wideA, products, c]) whole(tensor, 0);
  }),
  program("Matmul_LayoutTN_NoComms", "", (f, devices, mesh) => {
    const [a, b] = [f.input([devices, inner, k], "half"), f.input([n, k], "half")];
    const c = matmul(a, permute(b, [1, 0]));
    outputs(f, c);
    place(mesh, a, b, c);
    for (const tensor of [a, c]) whole(tensor, 0);
    c.setAllocationDomain([0, 1, 2, 3]);
  }),
  program("Matmul_LayoutTN_Allgather", "Allgather 1", (f, devices, mesh) => {
    const [a, b] = [f.input([devices, inner, k], "half"), f.input([n, k], "half")];
    const local = matmul(a, permute(b, [1, 0]));
    const c = set(local);
    outputs(f, c);
    place(mesh, a, b, local, c);
    for (const tensor of [a, local]) whole(tensor, 0);
  }),
  program("Matmul_LayoutNT_AllReduce", "Allreduce 1", (f, devices, mesh) => {
    const [a, b] = [f.input([devices, k, 6], "half"), f.input([devices, k, n], "half")];
    const turned = permute(a, [0, 2, 1]);
    const partial = matmul(turned, b);
    const c = sum(partial, [0]);
    outputs(f, c);
    place(mesh, a, b, turned, partial, c);
    for (const tensor of [a, b, turned, partial]) whole(tensor, 0);
  }),
  program("Matmul_LayoutNT_ReduceScatter", "ReduceScatter 1", (f, devices, mesh) => {
    const [a, b] = [f.input([devices, k, inner * devices], "half"), f.input([devices, k, n], "half")];
    const turned = permute(a, [0, 2, 1]);
    const partial = matmul(turned, b);
    const rows = reshape(partial, [devices, devices, inner, n]);
    const c = sum(rows, [0]);
    outputs(f, c);
    place(mesh, a, b, turned, partial, rows, c);
    for (const tensor of [a, b, turned, partial, rows]) whole(tensor, 0);
    whole(c, 1);
  }),
  program("PresegPreservesSharding", "", (f, devices, mesh) => {
    const [x, w] = [f.input([3, 4]), f.input([devices, 5, 4])];
    const turned = permute(w, [0, 2, 1]);
    const product = matmul(x, turned);
    const y = permute(product, [0, 2, 1]);
    outputs(f, y);
    place(mesh, x, w, turned, product, y);
    for (const tensor of [w, turned, product, y]) whole(tensor, 0);
  }),
  program("AnnotateWeightOnly", "", (f, devices, mesh) => {
    const [x, w] = [f.input([2, 3]), f.input([devices, 3, 5])];
    outputs(f, matmul(x, w));
    place(mesh, x, w);
    whole(w, 0);
  }),
  rowParallelLinear,
];
