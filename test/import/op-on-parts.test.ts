/** Ops on the parts of all devices, beside the same ops on each device's part. */
import { expect, it } from "vitest";
import * as ops from "../../src/ir/api/ops.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { opOnParts } from "../../src/import/manual/op-on-parts.ts";
import type { DevicePart } from "../../src/import/manual/parts.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { Tensor, elementCount } from "../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { outputsOf } from "../../src/ir/ops/op.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";

type Given = readonly [DType, ...number[]];
type Case = readonly [name: string, inputs: readonly Given[], make: (...tensors: TensorView[]) => TensorView];

const float = (...shape: number[]): Given => ["float", ...shape];
const index = (...shape: number[]): Given => ["int64", ...shape];

const cases: readonly Case[] = [
  ["set, unary and cast", [float(2, 3)], (x) => ops.cast(ops.exp(ops.set(x)), "double")],
  ["binary", [float(2, 3), float(3)], (x, y) => ops.sub(x, ops.unsqueeze(y, 0))],
  ["ternary", [float(2, 3), float(2, 3)], (x, y) => ops.where(ops.lt(x, 0), y, x)],
  ["reductions", [float(2, 3, 4)], (x) => ops.amax(ops.sum(x, [1]), [0])],
  ["squeeze and broadcast", [float(2, 3)], (x) => ops.squeeze(ops.broadcast(x, [false, true, false, true]), [1])],
  ["select, slice and pad", [float(4, 5)], (x) => ops.pad(ops.slice(ops.select(x, 0, 2), [1], [5], [2]), [[1, 2]], 7)],
  ["permute and reshape", [float(2, 3, 4)], (x) => ops.reshape(ops.permute(x, [2, 0, 1]), [8, 3])],
  ["expand", [float(1, 3)], (x) => ops.expand(x, [4, 3])],
  ["cat", [float(2, 3), float(1, 3)], (x, y) => ops.cat([x, y, x], 0)],
  ["cumsum and argsort", [float(3, 4)], (x) => ops.argsort(ops.cumsum(x, 1), 0)],
  ["matrices", [float(2, 3, 4), float(4, 5)], (x, y) => ops.matmul(x, y)],
  ["batches of matrices", [float(3, 4), float(2, 4, 5)], (x, y) => ops.matmul(x, y)],
  ["a vector and a matrix", [float(4), float(2, 4, 5)], (x, y) => ops.matmul(x, y)],
  ["a matrix and a vector", [float(2, 3, 4), float(4)], (x, y) => ops.matmul(x, y)],
  ["two vectors", [float(4), float(4)], (x, y) => ops.matmul(x, y)],
  ["linear", [float(2, 3, 4), float(5, 4), float(5)], (x, w, b) => ops.linear(x, w, b)],
  ["linear with one feature", [float(3, 4), float(4)], (x, w) => ops.linear(x, w)],
  ["rows at indices", [float(4, 3), index(2, 5)], (x, i) => ops.indexSelect(x, 0, i)],
  ["columns at indices", [float(2, 4, 3), index(5)], (x, i) => ops.indexSelect(x, 1, i)],
  ["an index without axes", [float(4, 3), index()], (x, i) => ops.indexSelect(x, 0, i)],
  ["gather", [float(4, 3), index(2, 3)], (x, i) => ops.gather(x, 0, i)],
  ["scatter", [float(4, 3), index(2, 3), float(2, 3)], (x, i, y) => ops.scatterAdd(x, 0, i, y)],
  ["attention", [float(2, 3, 4), float(2, 5, 4), float(2, 5, 3)], (q, k, v) => ops.sdpa(q, k, v).output],
  ["experts", [float(6, 3), float(2, 3, 4), index(2)], (x, w, ends) => ops.groupedMatmul(x, w, ops.cumsum(ends, 0))],
];

const ranks = 3;

it.each(cases)("%s", (_, inputs, make) => {
  const local = new Fusion();
  local.output(make(...inputs.map(([dtype, ...shape]) => local.input(shape, dtype))));
  const program = local.data();
  const random = createRandom(5);
  const rankValues = Array.from({ length: ranks }, () =>
    randomInputs(
      inputs.map(([dtype, ...shape]) => ({ dtype, shape, limit: 3 })),
      random,
      "uniform",
    ),
  );
  // Each choice of the inputs that differ between ranks.
  for (let mask = 0; mask < 2 ** inputs.length; mask++) {
    const differs = inputs.map((__, i) => (mask & (1 << i)) !== 0);
    const given = rankValues.map((own) => own.map((tensor, i) => (differs[i] ? tensor : at(at(rankValues, 0), i))));
    const expected = given.flatMap((own) =>
      Tensor.values(at(evaluateFusion(program, own).outputs, 0) as Tensor<"float">),
    );
    const [fusion, parts] = [new Fusion(), [] as DevicePart[]];
    program.inputs.forEach((id, i) => {
      const [dtype, ...shape] = at(inputs, i);
      const axes = differs[i] ? ["r"] : [];
      parts[id] = { tensor: fusion.input([...(differs[i] ? [ranks] : []), ...shape], dtype), axes, shape };
    });
    for (const op of program.ops) {
      const made = opOnParts(
        fusion,
        new Map([["r", ranks]]),
        op,
        program.tensors,
        op.inputs.map((id) => at(parts, id)),
      );
      outputsOf(op).forEach((id, i) => void (parts[id] = at(made, i)));
    }
    const result = at(parts, at(program.outputs, 0));
    fusion.output(result.tensor);
    const stacked = inputs.map(([dtype, ...shape], i): Tensor => {
      const own = given.slice(0, differs[i] ? ranks : 1).map((each) => at(each, i));
      const tensor = Tensor.zeros([...(differs[i] ? [ranks] : []), ...shape], dtype);
      own.forEach(({ data }, rank) => {
        tensor.data.set(data as never, rank * elementCount(shape));
      });
      return tensor;
    });
    const found = Tensor.values(at(evaluateFusion(fusion.data(), stacked).outputs, 0) as Tensor<"float">);
    expect(result.axes).toEqual(mask === 0 ? [] : ["r"]);
    const wanted = mask === 0 ? expected.slice(0, found.length) : expected;
    expect(found.length).toBe(wanted.length);
    found.forEach((element, i) => {
      expect(Number(element)).toBeCloseTo(Number(wanted[i]), 4);
    });
  }
});
