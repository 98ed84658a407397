/** The table of op kinds, and the output that a kind's row infers for an op. */
import type { DType } from "../../numerics/dtype.ts";
import type { Tensor } from "../domain.ts";
import type { Call } from "./call.ts";
import { binaryRow } from "./kinds/binary.ts";
import { broadcastRow } from "./kinds/broadcast.ts";
import { castRow } from "./kinds/cast.ts";
import { linearRow } from "./kinds/linear.ts";
import { matmulRow } from "./kinds/matmul.ts";
import { permuteRow } from "./kinds/permute.ts";
import { reductionRow } from "./kinds/reduction.ts";
import { reshapeRow } from "./kinds/reshape.ts";
import { selectRow } from "./kinds/select.ts";
import { setRow } from "./kinds/set.ts";
import { sliceRow } from "./kinds/slice.ts";
import { squeezeRow } from "./kinds/squeeze.ts";
import { unaryRow } from "./kinds/unary.ts";
import type { Op, OpKind, OpSpec } from "./op.ts";
import type { OpRow, OutputAxes } from "./row.ts";

export const opRows: { readonly [K in OpKind]: OpRow<Extract<Op, { readonly kind: K }>> } = {
  Set: setRow,
  Binary: binaryRow,
  Reduction: reductionRow,
  Slice: sliceRow,
  Select: selectRow,
  Matmul: matmulRow,
  Linear: linearRow,
  Unary: unaryRow,
  Cast: castRow,
  Broadcast: broadcastRow,
  Squeeze: squeezeRow,
  Permute: permuteRow,
  Reshape: reshapeRow,
};

/** The row of a node's kind, typed so that its methods take that node. */
export function rowOf({ kind }: { readonly kind: OpKind }): OpRow<Op> {
  return opRows[kind];
}

export interface OutputShape extends OutputAxes {
  readonly dtype: DType;
}

/** The dtype and axes of an op's output. Throws `dtype-mismatch`, `shape-mismatch`. */
export function inferOutput(spec: OpSpec, operands: readonly Tensor[], place: Call): OutputShape {
  const row = rowOf(spec);
  const dtype = row.dtype(spec, operands, place);
  return { dtype, ...row.shape(spec, operands, place) };
}
