/**
 * The operations of the Fusion IR, and the computations of host programs. Every op has `inputs`, which may be empty, and
 * an `output`, so that passes can handle any op. Attention has `further` outputs, which lie on the devices as the first
 * one does. Each kind has a file in kinds/ with its node and its row.
 *
 * Axis numbers count the logical axes of the first input without its reduced axes.
 */
import type { TensorId } from "../domain.ts";
import type { SdpaBackwardOp, SdpaOp } from "./kinds/attention/sdpa.ts";
import type { LinearOp, MatmulOp } from "./kinds/contractions.ts";
import type { FullOp, IotaOp, RandomBitsOp } from "./kinds/creation.ts";
import type { BinaryOp, CastOp, TernaryOp, UnaryOp } from "./kinds/elementwise.ts";
import type { GroupedMatmulOp } from "./kinds/grouped.ts";
import type { GatherOp, IndexSelectOp, ScatterAddOp } from "./kinds/indexing.ts";
import type { ArgsortOp, ScanOp, ReductionOp } from "./kinds/reduction.ts";
import type { BroadcastOp, ExpandOp, PermuteOp, SetOp, SqueezeOp, ReshapeOp } from "./kinds/views/broadcast.ts";
import type { CatOp, PadOp } from "./kinds/views/pad.ts";
import type { SelectOp, SliceOp } from "./kinds/views/slice.ts";
import type { SpecOf } from "./row.ts";

export type { BinaryOpType } from "./functions/binary.ts";
export type { RandomForm } from "./functions/philox.ts";
export type { ReductionOpType } from "./functions/reduction.ts";
export type { TernaryOpType } from "./functions/ternary.ts";
export type { UnaryOpType } from "./functions/unary.ts";
export type {
  ArgsortOp,
  BinaryOp,
  BroadcastOp,
  CastOp,
  CatOp,
  ExpandOp,
  FullOp,
  IotaOp,
  GatherOp,
  GroupedMatmulOp,
  IndexSelectOp,
  LinearOp,
  MatmulOp,
  PadOp,
  PermuteOp,
  RandomBitsOp,
  ReductionOp,
  ReshapeOp,
  ScanOp,
  ScatterAddOp,
  SdpaBackwardOp,
  SdpaOp,
  SelectOp,
  SetOp,
  SliceOp,
  SqueezeOp,
  TernaryOp,
  UnaryOp,
};

export type Op =
  | SetOp
  | UnaryOp
  | CastOp
  | BinaryOp
  | TernaryOp
  | ReductionOp
  | BroadcastOp
  | ExpandOp
  | SqueezeOp
  | PermuteOp
  | ReshapeOp
  | SliceOp
  | SelectOp
  | CatOp
  | PadOp
  | IndexSelectOp
  | GatherOp
  | ScatterAddOp
  | ScanOp
  | ArgsortOp
  | MatmulOp
  | LinearOp
  | GroupedMatmulOp
  | FullOp
  | IotaOp
  | RandomBitsOp
  | SdpaOp
  | SdpaBackwardOp;

/** Ops with a contracted axis, which devices may share. */
export type ContractionOp = MatmulOp | LinearOp | GroupedMatmulOp;

export function isContraction(op: Op): op is ContractionOp {
  return op.kind === "Matmul" || op.kind === "Linear" || op.kind === "GroupedMatmul";
}

export type OpKind = Op["kind"];
export type OpSpec = SpecOf<Op>;

export function outputsOf({ output, further }: Pick<Op, "output" | "further">): readonly TensorId[] {
  return further === undefined ? [output] : [output, ...further];
}

/** The op on tensors that `idOf` gives. */
export function renamedOp(op: Op, idOf: (id: TensorId) => TensorId): Op {
  const further = op.further === undefined ? {} : { further: op.further.map(idOf) };
  return { ...op, inputs: op.inputs.map(idOf), output: idOf(op.output), ...further };
}

export function opOf(
  spec: OpSpec,
  inputs: readonly TensorId[],
  output: TensorId,
  further: readonly TensorId[] = [],
): Op {
  switch (spec.kind) {
    case "Reshape":
    case "Expand":
      return { kind: spec.kind, inputs, output };
    case "Full":
      return { kind: spec.kind, value: spec.value, inputs, output };
    case "Iota":
      return { kind: spec.kind, start: spec.start, step: spec.step, inputs, output };
    default:
      return { ...spec, inputs, output, ...(further.length === 0 ? {} : { further }) };
  }
}
