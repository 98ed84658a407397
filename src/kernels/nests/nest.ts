/**
 * A nest computes one value of a unit: at every index of the value it reads elements, applies scalar expressions, and
 * stores or accumulates the result. A nest is data. build-nest.ts makes it, arrange-loops.ts orders and merges its
 * loops, emit-nest.ts emits its code.
 */
import type { DType } from "../../numerics/dtype.ts";
import type { Expression } from "../../numerics/scalar/expression.ts";
import { sumLevels } from "../../numerics/sum-order.ts";
import type { ReductionSemantics } from "../../ir/ops/functions/expressions.ts";
import type { Affine, Atom } from "./affine.ts";

/** The memory of a value: an operand of the kernel, or the library's scratch. */
export type NestMemory =
  | { readonly kind: "input" | "output"; readonly position: number }
  /** In bytes from the start of the scratch. */
  | { readonly kind: "scratch"; readonly offset: number };

/** A stored value. */
export interface ValuePlacement {
  readonly memory: NestMemory;
  readonly dtype: DType;
  /** In elements. */
  readonly strides: readonly number[];
}

/** Reads or writes one element at a time; `offset` in elements. */
export interface Access {
  readonly memory: NestMemory;
  readonly dtype: DType;
  readonly offset: Affine;
}

/** An index of a whole tensor, as i64: `index` plus the launch's origin at position `origin`. */
export interface IndexInstruction {
  readonly kind: "index";
  readonly index: Affine;
  readonly origin: number;
}

/** Single assignment: the position of an instruction identifies it, and its operands precede it. */
export type Instruction =
  | { readonly kind: "load"; readonly access: Access }
  | IndexInstruction
  | { readonly kind: "apply"; readonly expression: Expression; readonly operands: readonly number[] };

export interface Loop {
  readonly atom: number;
  readonly extent: number;
}

export function iterationCount(loops: readonly Loop[]): number {
  return loops.reduce((product, { extent }) => product * extent, 1);
}

export interface Nest {
  readonly atoms: readonly Atom[];
  /** Over the elements of the value, outermost first. */
  readonly loops: readonly Loop[];
  /** Run inside `loops`, in the order of accumulation. Empty without a reduction. */
  readonly reducedLoops: readonly Loop[];
  readonly reduction: ReductionSemantics | null;
  /** If present, an iteration of `loops` goes through `reducedLoops` in order, and writes many elements. */
  readonly ordered?: Ordered;
  /** The nest stores or accumulates the result of the last instruction. */
  readonly body: readonly Instruction[];
  readonly target: Access;
}

/** The value of an instruction that ends the run unless it is below the extent of an axis. */
export interface Below {
  readonly instruction: number;
  readonly extent: number;
}

export type Ordered =
  /** The body's value is combined with, or added to, the element at the target, which several iterations may have. */
  | { readonly kind: "scatter"; readonly combine: Expression; readonly sums: boolean; readonly below?: Below }
  /** The target is the combination of the values of all iterations so far; from the last one on, if `reverse`. */
  | { readonly kind: "scan"; readonly semantics: ReductionSemantics; readonly reverse: boolean }
  /** The targets in their order are the iterations, sorted by their values. */
  | { readonly kind: "sort"; readonly descending: boolean };

/** The number of accumulators per element of a nest with a reduction (numerics/sum-order.ts). */
export function accumulatorLevels({ reduction, reducedLoops }: Nest): number {
  if (reduction?.inBlocks !== true) return 1;
  return sumLevels(reducedLoops.reduce((product, { extent }) => product * extent, 1));
}

export function nestAccesses(nest: Nest): readonly Access[] {
  return [...loadsOf(nest), nest.target];
}

export function loadsOf({ body }: Pick<Nest, "body">): readonly Access[] {
  return body.flatMap((instruction) => (instruction.kind === "load" ? [instruction.access] : []));
}
