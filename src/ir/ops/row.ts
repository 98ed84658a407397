/**
 * What there is to say of a kind of op: one row per kind (kinds/), read by everything that walks ops. Operands count without
 * their reduced axes. Two kinds have a table of functions on top: unary and binary ops and reductions name one of functions/.
 *
 * What a back end or a pass does with a kind stands there, in a table over all kinds, so that a new kind is a compile error.
 */
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import type { DType } from "../../numerics/dtype.ts";
import type { AxisShape, IterDomain, Tensor, TensorId } from "../domain.ts";
import type { Scalar } from "../scalar/scalar.ts";
import type { AxisPair } from "./axis-pairs.ts";
import type { Call } from "./call.ts";

export interface OpBase {
  readonly kind: string;
  readonly inputs: readonly TensorId[];
  readonly output: TensorId;
}

/** An op before it has operands and an output: what a call asks for, with axes counted from 0 and checked. */
export type SpecOf<T> = T extends OpBase
  ? Omit<T, "inputs" | "output"> &
      // A reshape's target stands in its output alone.
      (T extends { kind: "Reshape" } ? { readonly extents: readonly Scalar[] } : unknown)
  : never;

/** What an op says for itself, whether its operands are tensors of a Fusion or values of a kernel. */
export type AttributesOf<T> = T extends OpBase ? Omit<T, "inputs" | "output" | "index" | "orders"> : never;

/** The kinds that move elements and compute nothing: their outputs can be views of their operands. */
export type ViewKind = "Set" | "Broadcast" | "Squeeze" | "Permute" | "Reshape" | "Slice" | "Select";

export type Axes = readonly IterDomain[];

/** Methods, so that a row of one kind serves as a row of any op that is known to be of that kind. */
export interface OpRow<T extends OpBase> {
  /** The fewest and the most operands. */
  readonly operands: readonly [number, number];
  /** Whether it can be a statement of a host program by itself (nvFuser's isLowerableAsStandaloneHostOp). */
  readonly standalone: boolean;
  readonly isView: T extends { readonly kind: ViewKind } ? true : false;
  /** The output's dtype. Ops do not promote: the API inserts casts. Throws `dtype-mismatch`. */
  dtype(spec: SpecOf<T>, operands: readonly Tensor[], place: Call): DType;
  /**
   * The output's logical domain. Axes that the op joins must have equal extents; symbolic ones are taken as equal.
   * Source: nvFuser's newOutputDomain, newForMatmul, newForLinear, newForReduction. Throws `shape-mismatch`.
   */
  shape(spec: SpecOf<T>, operands: readonly Tensor[], place: Call): OutputAxes;
  /** The spec that gives the op, its attributes checked as a call's arguments are. Throws the call's diagnostics. */
  respec(op: T, operands: readonly Tensor[], output: Tensor, place: Call): SpecOf<T>;
  /** Which axes of operands and output index the same thing (axis-map.ts). `output` has no axes of partial results. */
  pairs(op: T, operands: readonly Axes[], output: Axes): readonly AxisPair[];
  /** The axes of the output that count partial results of devices (axis-map.ts). */
  partial(op: T, operands: readonly Axes[], output: Axes): Axes;
  /** The axes of operands that the op reduces, contracts or cuts: a device needs the whole of them. */
  whole(op: T, operands: readonly Axes[]): readonly OperandAxis[];
  /** What is wrong with known sizes, apart from paired axes of different sizes; null if nothing. */
  misfit(op: T, sizes: KnownSizes): Omit<Diagnostic, "place"> | null;
  /** Floating-point operations by the usual counts: moving and converting are none, a function is one. */
  flops(op: AttributesOf<T>, shapes: Shapes): number;
  /** CPU time, in the unit of `elementWork`, without writing the output. */
  work(op: AttributesOf<T>, shapes: Shapes): number;
}

export interface OutputAxes {
  readonly axes: readonly AxisShape[];
  /** Axis i takes the (numbering[i])-th new IterDomain number; in axis order where absent. */
  readonly numbering?: readonly number[];
}

/** An axis of the operand at position `operand` of an op. */
export interface OperandAxis {
  readonly operand: number;
  readonly axis: IterDomain;
}

export interface KnownSizes {
  /** The first operand's. */
  readonly input: readonly number[];
  readonly output: () => readonly number[];
  readonly valueOf: (extent: Scalar) => number;
}

/** Local sizes of a computation. */
export interface Shapes {
  readonly operands: readonly (readonly number[])[];
  readonly output: readonly number[];
}

/**
 * The CPU work of reading, computing or writing one element, in multiply-adds of the GEMM kernels, which take 0.02 to 0.05 ns
 * each on a core of 2024.
 */
export const elementWork = 4;
