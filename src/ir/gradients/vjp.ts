/**
 * The form of a rule of reverse mode. A rule turns the cotangent of an op's output into those of its operands. It calls
 * the functions of the API, so that it reads like a program and gets their casts and broadcasts.
 */
import { internals } from "../api/handle.ts";
import { broadcast, cast, sum } from "../api/ops.ts";
import { applyIn } from "../api/ops/apply.ts";
import type { TensorView } from "../api/tensor-view.ts";
import { isUnitAxis, withoutReductions } from "../domain.ts";
import { type Call, call } from "../ops/call.ts";
import { fullSpec } from "../ops/kinds/creation.ts";
import type { Op } from "../ops/op.ts";
import type { Scalar } from "../scalar/scalar.ts";

/** An op of the sweep. */
export interface ReverseStep {
  /** The cotangent of the output, of its dtype and shape. */
  readonly g: TensorView;
  readonly operands: readonly TensorView[];
  readonly output: TensorView;
  /** All outputs, of an op that has several. */
  readonly outputs: readonly TensorView[];
}

/** Appends the ops of an operand's cotangent, of the operand's dtype and shape. Null if the operand has none. */
export type Cotangent = (() => TensorView) | null;

interface Rule<O extends Op> {
  /** A method, so that the rule of one kind is assignable to a rule of any op. */
  cotangents(op: O, step: ReverseStep): readonly Cotangent[];
}

/** One cotangent per operand. The sweep calls those that it needs. */
export type Vjp<O extends Op> = Rule<O>["cotangents"];

// What rules need to give a cotangent the shape of its operand.

/** Sums over the axes along which an op stretched `x`, which are leading axes that `x` lacks, and axes of extent 1. */
export function sumTo(g: TensorView, x: TensorView): TensorView {
  const [from, to] = [g, x].map((tensor) => withoutReductions(tensor.data().domain.logical).map(isUnitAxis));
  const missing = g.rank - x.rank;
  const stretched = [...(from ?? []).keys()].filter(
    (axis) => axis < missing || (to?.[axis - missing] === true && from?.[axis] === false),
  );
  if (stretched.length === 0) return g;
  const total = sum(g, stretched);
  const flags = Array.from({ length: x.rank }, (_, axis) => stretched.includes(axis + missing));
  return flags.includes(true) ? broadcast(total, flags) : total;
}

/** A tensor of the dtype of `x` in which every element is `value`. */
export function filled(x: TensorView, shape: readonly Scalar[], value: number): TensorView {
  const place: Call = call("gradients");
  return applyIn(x[internals].builder, fullSpec(shape, value, x.dtype, place), [], place);
}

/** 1 where `x` is not 0, else 0. */
export function nonZero(x: TensorView): TensorView {
  return cast(cast(x, "bool"), x.dtype);
}

/** Whether the leading `count` axes have one element each. */
export function isStretched(x: TensorView, count: number): boolean {
  return withoutReductions(x.data().domain.logical).slice(0, count).every(isUnitAxis);
}
