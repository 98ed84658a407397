/**
 * How large the terms of sums are. Where terms cancel, rounding errors are relative to them and not to the sum: the
 * gradient of the bias of attention's keys is 0 but for rounding.
 */
import type { TensorId } from "../ir/domain.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import { isContraction, type Op } from "../ir/ops/op.ts";
import { shapeOf, type Sizes } from "../ir/sizes.ts";
import { Tensor } from "../numerics/tensor/host-tensor.ts";
import { at } from "../support/invariant.ts";
import { evaluateValues } from "./evaluate.ts";
import { wholeSample } from "./sample/sample.ts";
import { fromTensor, oracleNumbers, toTensor } from "./value.ts";

/**
 * For each element of an output, the sum of the magnitudes of the terms that the last sums or contractions before it
 * add; null if other ops make the output.
 */
export function termMagnitudes(
  fusion: FusionData,
  output: TensorId,
  inputs: readonly Tensor[],
  sizes: Sizes,
): readonly number[] | null {
  const { ops, terms } = lastSums(fusion, output);
  if (!ops.some(isSum)) return null;
  const values = (data: FusionData, given: readonly Tensor[]): readonly Tensor[] => {
    const samples = data.outputs.map((id) => wholeSample(shapeOf(at(data.tensors, id), sizes)));
    return evaluateValues(data, given, sizes, samples);
  };
  const found = values({ ...fusion, outputs: terms }, inputs).map((tensor) => {
    const value = fromTensor(tensor);
    return toTensor({ ...value, elements: oracleNumbers(value).map(Math.abs) });
  });
  const [sum] = values({ ...fusion, inputs: terms, ops, outputs: [output], markers: [] }, found);
  return sum === undefined ? null : Array.from<unknown, number>(Tensor.values(sum), Number);
}

/** The last sums before a tensor, the views, casts and additions between, in order, and the tensors that they read. */
function lastSums(fusion: FusionData, output: TensorId): { readonly ops: readonly Op[]; readonly terms: TensorId[] } {
  const wanted = new Set([output]);
  const ops: Op[] = [];
  for (const op of fusion.ops.toReversed()) {
    if (!wanted.has(op.output) || !(isSum(op) || isLinear(op))) continue;
    ops.unshift(op.kind === "Binary" ? { ...op, op: "add" } : op);
    wanted.delete(op.output);
    if (!isSum(op)) for (const id of op.inputs) wanted.add(id);
  }
  const made = new Set(ops.map((op) => op.output));
  return { ops, terms: [...new Set(ops.flatMap(({ inputs }) => inputs))].filter((id) => !made.has(id)) };
}

function isSum(op: Op): boolean {
  return isContraction(op) || (op.kind === "Reduction" && op.op === "sum");
}

function isLinear(op: Op): boolean {
  if (op.kind === "Binary") return (op.op === "add" || op.op === "sub") && op.scalar === undefined;
  // Gradients of slices are padded by 0.
  return ["Set", "Cast", "Reshape", "Squeeze", "Broadcast", "Permute", "Slice", "Cat", "Pad", "Expand"].includes(
    op.kind,
  );
}
