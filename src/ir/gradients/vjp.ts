/**
 * The form of a rule of reverse mode. A rule turns the cotangent of an op's output into those of its operands. It calls
 * the functions of the API, so that it reads like a program and gets their casts and broadcasts.
 */
import type { TensorView } from "../api/tensor-view.ts";
import type { Op } from "../ops/op.ts";

/** An op of the sweep. */
export interface Step {
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
  cotangents(op: O, step: Step): readonly Cotangent[];
}

/** One cotangent per operand. The sweep calls those that it needs. */
export type Vjp<O extends Op> = Rule<O>["cotangents"];
