/**
 * The operations of the Fusion IR. All have `inputs` and one `output`, so that passes can walk any op; what
 * else an op needs stands beside them. The same nodes are the computations of host programs.
 *
 * Axis numbers count the logical axes of the first input without its reduced axes.
 */
import type { DType } from "../../numerics/dtype.ts";
import type { BinaryOpType } from "./functions/binary.ts";
import type { ReductionOpType } from "./functions/reduction.ts";
import type { UnaryOpType } from "./functions/unary.ts";
import type { TensorId } from "../domain.ts";
import type { Scalar } from "../scalar/scalar.ts";

export type { BinaryOpType, ReductionOpType, UnaryOpType };

interface OpBase {
  readonly inputs: readonly TensorId[];
  readonly output: TensorId;
}

export interface SetOp extends OpBase {
  readonly kind: "Set";
}
export interface UnaryOp extends OpBase {
  readonly kind: "Unary";
  readonly op: UnaryOpType;
}
/** Converts to the output's dtype; `to` repeats it. */
export interface CastOp extends OpBase {
  readonly kind: "Cast";
  readonly to: DType;
}
export interface BinaryOp extends OpBase {
  readonly kind: "Binary";
  readonly op: BinaryOpType;
}
/** The reduced axes stay in the output's logical domain with iteration type reduction. */
export interface ReductionOp extends OpBase {
  readonly kind: "Reduction";
  readonly op: ReductionOpType;
  readonly axes: readonly number[];
}
/** `flags[i]` says that axis i of the output is a new axis of extent 1. */
export interface BroadcastOp extends OpBase {
  readonly kind: "Broadcast";
  readonly flags: readonly boolean[];
}
/** Removes axes of extent 1. */
export interface SqueezeOp extends OpBase {
  readonly kind: "Squeeze";
  readonly axes: readonly number[];
}
/** Axis i of the output is axis `order[i]` of the input. */
export interface PermuteOp extends OpBase {
  readonly kind: "Permute";
  readonly order: readonly number[];
}
/** Same elements in row-major order under the output's shape. */
export interface ReshapeOp extends OpBase {
  readonly kind: "Reshape";
}
/** `[start, stop)` of every axis. */
export interface SliceOp extends OpBase {
  readonly kind: "Slice";
  readonly ranges: readonly { readonly start: number; readonly stop: number }[];
}
/** Drops `axis` by fixing its index. */
export interface SelectOp extends OpBase {
  readonly kind: "Select";
  readonly axis: number;
  readonly index: Scalar;
}
/** How a contraction reads and writes. Those of a user's Fusion have neither: passes and hand-built host programs add them. */
interface ContractionBase extends OpBase {
  /**
   * Of an op that contracts one chunk after the other: whether the product is added to what the output holds (beta = 1 of a BLAS), and
   * the sum rounded once, or is the first. Then the output's reduction axis prints all chunks.
   */
  readonly accumulate?: boolean;
  /** Operand i as a permute of its tensor that is read in place: its axis j is axis `orders[i][j]` of the tensor. null: as it is. */
  readonly orders?: readonly (readonly number[] | null)[];
}
/**
 * [..., M, K] x [..., K, N] -> [..., M, N]; the output has a trailing reduction axis K. A batch axis that is contracted like K is a
 * reduction axis of the output, in its place.
 */
export interface MatmulOp extends ContractionBase {
  readonly kind: "Matmul";
}
/** x [..., K], weight [N, K], bias [N]? -> [..., N]; the output has a trailing reduction axis K. */
export interface LinearOp extends ContractionBase {
  readonly kind: "Linear";
}

export type Op =
  | SetOp
  | UnaryOp
  | CastOp
  | BinaryOp
  | ReductionOp
  | BroadcastOp
  | SqueezeOp
  | PermuteOp
  | ReshapeOp
  | SliceOp
  | SelectOp
  | MatmulOp
  | LinearOp;

export type OpKind = Op["kind"];

/** Whether an op can stand alone as a statement of a host program (nvFuser's isLowerableAsStandaloneHostOp). */
export const standaloneHostOp: { readonly [K in OpKind]: boolean } = {
  Set: true,
  Binary: true,
  Reduction: true,
  Slice: true,
  Select: true,
  Matmul: true,
  Linear: true,
  Unary: false,
  Cast: false,
  Broadcast: false,
  Squeeze: false,
  Permute: false,
  Reshape: false,
};
