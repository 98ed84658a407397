/**
 * The operations of the Fusion IR, and the computations of host programs. Every op has `inputs` and one `output`, so
 * that passes can handle any op. Each kind has a file in kinds/ with its node and its row.
 *
 * Axis numbers count the logical axes of the first input without its reduced axes.
 */
import type { TensorId } from "../domain.ts";
import type { BinaryOp } from "./kinds/binary.ts";
import type { BroadcastOp } from "./kinds/broadcast.ts";
import type { CastOp } from "./kinds/cast.ts";
import type { LinearOp } from "./kinds/linear.ts";
import type { MatmulOp } from "./kinds/matmul.ts";
import type { PermuteOp } from "./kinds/permute.ts";
import type { ReductionOp } from "./kinds/reduction.ts";
import type { ReshapeOp } from "./kinds/reshape.ts";
import type { SelectOp } from "./kinds/select.ts";
import type { SetOp } from "./kinds/set.ts";
import type { SliceOp } from "./kinds/slice.ts";
import type { SqueezeOp } from "./kinds/squeeze.ts";
import type { UnaryOp } from "./kinds/unary.ts";
import type { SpecOf } from "./row.ts";

export type { BinaryOpType } from "./functions/binary.ts";
export type { ReductionOpType } from "./functions/reduction.ts";
export type { UnaryOpType } from "./functions/unary.ts";
export type {
  BinaryOp,
  BroadcastOp,
  CastOp,
  LinearOp,
  MatmulOp,
  PermuteOp,
  ReductionOp,
  ReshapeOp,
  SelectOp,
  SetOp,
  SliceOp,
  SqueezeOp,
  UnaryOp,
};

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
export type OpSpec = SpecOf<Op>;

export function opOf(spec: OpSpec, inputs: readonly TensorId[], output: TensorId): Op {
  return spec.kind === "Reshape" ? { kind: "Reshape", inputs, output } : { ...spec, inputs, output };
}
