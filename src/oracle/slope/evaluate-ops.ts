/** Evaluates ops one after the other, and keeps all values. */
import type { TensorId } from "../../ir/domain.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import { shapeOf } from "../../ir/sizes.ts";
import { at, invariant } from "../../support/invariant.ts";
import { evaluateOp, type Setting } from "../evaluate-op.ts";
import { type Value, withoutBounds } from "../value.ts";

/** The ops that the tensors depend on, without those before tensors that are `known`. */
export function opsBefore(
  ops: readonly Op[],
  tensors: readonly TensorId[],
  known: { readonly has: (id: TensorId) => boolean } = new Set(),
): readonly Op[] {
  const needed = new Set(tensors);
  const isNeeded = (id: TensorId): boolean => needed.has(id) && !known.has(id);
  const found = ops.toReversed().filter((op) => {
    if (!outputsOf(op).some(isNeeded)) return false;
    for (const id of op.inputs) needed.add(id);
    return true;
  });
  return found.toReversed();
}

/** Whether the tensors can be computed of `inputs`: a Fusion that was cut by hand may lack ops. */
export function canMake(ops: readonly Op[], tensors: readonly TensorId[], inputs: readonly TensorId[]): boolean {
  const own = opsBefore(ops, tensors, new Set(inputs));
  const made = new Set([...inputs, ...own.flatMap(outputsOf)]);
  return [...tensors, ...own.flatMap((op) => op.inputs)].every((id) => made.has(id));
}

/** Adds what the ops make to `values`. */
export function evaluateOps(ops: readonly Op[], values: Map<TensorId, Value>, setting: Setting): void {
  for (const op of ops) {
    const operands = op.inputs.map((id) => valueOf(values, id));
    const results = evaluateOp(op, operands, shapeOf(at(setting.tensors, op.output), setting.sizes), setting);
    outputsOf(op).forEach((id, i) => {
      if (i < results.length) values.set(id, withoutBounds(at(results, i)));
    });
  }
}

export function valueOf(values: ReadonlyMap<TensorId, Value>, id: TensorId): Value {
  const value = values.get(id);
  invariant(value !== undefined, "ops are in topological order", id);
  return value;
}
