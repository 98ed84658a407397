/**
 * A nest computes one value of a unit: for every index of the value, read elements, apply scalar expressions, and store the
 * result or fold it into an accumulator. It is data: build-nest.ts makes it, arrange-loops.ts orders and joins its loops,
 * emit-nest.ts writes the code.
 */
import type { DType } from "../../numerics/dtype.ts";
import type { Expression } from "../../numerics/scalar/expression.ts";
import type { ReductionSemantics } from "../../ir/ops/functions/expressions.ts";
import type { Affine, Atom } from "./affine.ts";

/** Where a value lies: an operand of the kernel, or the library's scratch. */
export type Memory =
  | { readonly kind: "input" | "output"; readonly position: number }
  /** In bytes from the start of the scratch. */
  | { readonly kind: "scratch"; readonly offset: number };

/** A stored value. */
export interface Placement {
  readonly memory: Memory;
  readonly dtype: DType;
  /** In elements. */
  readonly strides: readonly number[];
}

/** One element at a time; `offset` in elements. */
export interface Access {
  readonly memory: Memory;
  readonly dtype: DType;
  readonly offset: Affine;
}

/** Single assignment: an instruction is known by its position, and its operands come before it. */
export type Instruction =
  | { readonly kind: "load"; readonly access: Access }
  | { readonly kind: "apply"; readonly expression: Expression; readonly operands: readonly number[] };

export interface Loop {
  readonly atom: number;
  readonly extent: number;
}

export interface Nest {
  readonly atoms: readonly Atom[];
  /** Over the elements of the value, outermost first. */
  readonly loops: readonly Loop[];
  /** Inside `loops`, in the order of accumulation; empty without a reduction. */
  readonly reducedLoops: readonly Loop[];
  readonly reduction: ReductionSemantics | null;
  /** The last one's result is what is stored or accumulated. */
  readonly body: readonly Instruction[];
  readonly target: Access;
}
