/**
 * The facts about a kind of op: one row per kind (kinds/), for all code that handles any op. Operand axes exclude
 * reduced axes. Unary ops, binary ops and reductions name a function, which has its own row in functions/.
 *
 * Back ends and passes keep their own tables over all kinds, so that a missing kind is a compile error.
 */
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import type { DType } from "../../numerics/dtype.ts";
import type { AxisShape, IterDomain, Tensor, TensorId } from "../domain.ts";
import type { Scalar } from "../scalar/scalar.ts";
import type { Call } from "./call.ts";

export interface OpBase {
  readonly kind: string;
  readonly inputs: readonly TensorId[];
  readonly output: TensorId;
  /** The outputs after the first one, of a kind that has several (`outputsOf` lists all). */
  readonly further?: readonly TensorId[];
}

/** An op without operands and output: the arguments of a call, with axes counted from 0 and checked. */
export type SpecOf<T> = T extends OpBase
  ? Omit<T, "inputs" | "output" | "further"> &
      // Only the output holds the shape that a call gives, and the dtype.
      (T extends { kind: "Reshape" | "Expand" | "Full" | "Iota" } ? { readonly extents: readonly Scalar[] } : unknown) &
      (T extends { kind: "Full" | "Iota" } ? { readonly dtype: DType } : unknown)
  : never;

/** The attributes of an op, whether its operands are tensors of a Fusion or values of a kernel. */
export type AttributesOf<T> = T extends OpBase ? Omit<T, "inputs" | "output" | "further" | RunTimeAttribute> : never;

/** Attributes that are known when a program is recorded: a step of a kernel has numbers in their place. */
export type RunTimeAttribute = "index" | "ranges" | "orders" | "start" | "step";

/** The kinds that move elements without computing. Their outputs can be views of their operands. */
export type ViewKind = "Set" | "Broadcast" | "Expand" | "Squeeze" | "Permute" | "Reshape" | "Slice" | "Select";

export type Axes = readonly IterDomain[];

/** The functions are methods so that the row of one kind is assignable to a row of any op. */
export interface OpRow<T extends OpBase> {
  /** The smallest and largest number of operands. */
  readonly operands: readonly [number, number];
  /** Whether the op can be a statement of a host program (nvFuser's isLowerableAsStandaloneHostOp). */
  readonly standalone: boolean;
  readonly isView: T extends { readonly kind: ViewKind } ? true : false;
  /** The output's dtype. Ops do not promote; the API inserts casts. Throws `dtype-mismatch`. */
  dtype(spec: SpecOf<T>, operands: readonly Tensor[], place: Call): DType;
  /**
   * The output's logical domain. Paired axes must have equal extents; symbolic extents are assumed equal.
   * Source: nvFuser's newOutputDomain, newForMatmul, newForLinear, newForReduction. Throws `shape-mismatch`.
   */
  shape(spec: SpecOf<T>, operands: readonly Tensor[], place: Call): OutputAxes;
  /** The outputs after the first, of a kind that has several. */
  further?(spec: SpecOf<T>, operands: readonly Tensor[]): readonly OutputShape[];
  /** The spec that would make this op, with the checks that a call makes. Throws the call's diagnostics. */
  respec(op: T, operands: readonly Tensor[], output: Tensor, place: Call): SpecOf<T>;
  /**
   * Which operand and output axes have the same index (axis-map.ts). `output` excludes axes of partial results. `which`
   * numbers the output, of a kind that has several.
   */
  pairs(op: T, operands: readonly Axes[], output: Axes, which: number): readonly AxisPair[];
  /**
   * Of a view: for each axis of its operand, which has `rank` axes, where the elements of the output are read. `starts`
   * holds the starts of a slice, or the index of a select. Null for a reshape, and for ops that are no views.
   */
  sources(op: AttributesOf<T>, rank: number, starts: readonly number[]): readonly AxisSource[] | null;
  /** The op on operands that lack axis `cut[i]`, which the output lacks too; null for an operand that is whole. */
  sliced(op: T, cut: readonly (number | null)[]): T;
  /** The output axes that number the devices' partial results (axis-map.ts). */
  partial(op: T, operands: readonly Axes[], output: Axes): Axes;
  /** The operand axes that the op reduces, contracts or cuts. A device needs all of such an axis. */
  whole(op: T, operands: readonly Axes[]): readonly OperandAxis[];
  /** A diagnostic if known sizes violate the op's rules, or null. Sizes of paired axes are checked elsewhere. */
  misfit(op: T, sizes: KnownSizes): Omit<Diagnostic, "place"> | null;
  /** Floating-point operations by the usual counts: 0 for moves and casts, 1 for a function of an element. */
  flops(op: AttributesOf<T>, shapes: Shapes): number;
  /** CPU time in units of `elementWork`, without the write of the output. */
  work(op: AttributesOf<T>, shapes: Shapes): number;
}

export interface OutputAxes {
  readonly axes: readonly AxisShape[];
  /** Axis i gets the (numbering[i])-th new IterDomain number. The default is axis order. */
  readonly numbering?: readonly number[];
}

export interface OutputShape extends OutputAxes {
  readonly dtype: DType;
}

/** An axis of an operand and an axis of the output with the same index. */
export interface AxisPair {
  /** Index in `op.inputs`. */
  readonly operand: number;
  /** An axis of the operand's logical domain. */
  readonly producer: IterDomain;
  /** An axis of the output's logical domain. */
  readonly consumer: IterDomain;
  /** The operand has one element along the axis, and the output may have more: every index reads the same element. */
  readonly broadcast: boolean;
  /**
   * The two are the outermost axes of groups that a reshape rearranges, and may differ in extent. Only parts split off
   * from the outside, as many as divide both evenly, have the same elements.
   */
  readonly outermost: boolean;
  /**
   * The number of blocks along both axes, of which the op reads one element each. Only parts of whole blocks, as many as
   * divide this, have the same index.
   */
  readonly blocks?: Scalar;
}

/** The index along an axis of an operand: that along an axis of the output, or 0 for null, plus an offset. */
export interface AxisSource {
  readonly axis: number | null;
  readonly offset: number;
}

/** An axis of the operand at position `operand` of an op. */
export interface OperandAxis {
  readonly operand: number;
  readonly axis: IterDomain;
}

export interface KnownSizes {
  /** Of the first operand. */
  readonly input: readonly number[];
  /** Of all operands. */
  readonly operands: () => readonly (readonly number[])[];
  readonly output: () => readonly number[];
  readonly valueOf: (extent: Scalar) => number;
}

/** Local sizes of a computation. */
export interface Shapes {
  readonly operands: readonly (readonly number[])[];
  readonly output: readonly number[];
}

/**
 * The CPU work of reading, computing or writing one element, in multiply-adds of the GEMM kernels. A multiply-add takes
 * 0.02 to 0.05 ns on a core of 2024.
 */
export const elementWork = 4;
