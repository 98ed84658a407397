/** The table of op kinds, and the output that a kind's row infers for an op. */
import type { Tensor } from "../domain.ts";
import type { Call } from "./call.ts";
import { sdpaBackwardRow, sdpaRow } from "./kinds/attention/sdpa.ts";
import { linearRow, matmulRow } from "./kinds/contractions.ts";
import { fullRow, iotaRow, randomBitsRow } from "./kinds/creation.ts";
import { binaryRow, castRow, ternaryRow, unaryRow } from "./kinds/elementwise.ts";
import { groupedMatmulRow } from "./kinds/grouped.ts";
import { gatherRow, indexSelectRow, scatterAddRow } from "./kinds/indexing.ts";
import { argsortRow, scanRow, reductionRow } from "./kinds/reduction.ts";
import { broadcastRow, expandRow, permuteRow, setRow, squeezeRow, reshapeRow } from "./kinds/views/broadcast.ts";
import { catRow, padRow } from "./kinds/views/pad.ts";
import { selectRow, sliceRow } from "./kinds/views/slice.ts";
import type { Op, OpKind, OpSpec } from "./op.ts";
import type { OpRow, OutputShape } from "./row.ts";

export type { OutputShape };

export const opRows: { readonly [K in OpKind]: OpRow<Extract<Op, { readonly kind: K }>> } = {
  Set: setRow,
  Binary: binaryRow,
  Reduction: reductionRow,
  Slice: sliceRow,
  Select: selectRow,
  Matmul: matmulRow,
  Linear: linearRow,
  GroupedMatmul: groupedMatmulRow,
  Full: fullRow,
  Iota: iotaRow,
  RandomBits: randomBitsRow,
  Unary: unaryRow,
  Ternary: ternaryRow,
  Cast: castRow,
  Broadcast: broadcastRow,
  Expand: expandRow,
  Cat: catRow,
  Pad: padRow,
  IndexSelect: indexSelectRow,
  Gather: gatherRow,
  ScatterAdd: scatterAddRow,
  Scan: scanRow,
  Argsort: argsortRow,
  Squeeze: squeezeRow,
  Permute: permuteRow,
  Reshape: reshapeRow,
  Sdpa: sdpaRow,
  SdpaBackward: sdpaBackwardRow,
};

/** The row of a node's kind, typed so that its methods take that node. */
export function rowOf({ kind }: { readonly kind: OpKind }): OpRow<Op> {
  return opRows[kind];
}

/** The dtype and axes of an op's output. Throws `dtype-mismatch`, `shape-mismatch`. */
export function inferOutput(spec: OpSpec, operands: readonly Tensor[], place: Call): OutputShape {
  const row = rowOf(spec);
  const dtype = row.dtype(spec, operands, place);
  return { dtype, ...row.shape(spec, operands, place) };
}

/** The dtypes and axes of all outputs of an op. Throws what `inferOutput` throws. */
export function inferOutputs(spec: OpSpec, operands: readonly Tensor[], place: Call): readonly OutputShape[] {
  const first = inferOutput(spec, operands, place);
  return [first, ...(rowOf(spec).further?.(spec, operands) ?? [])];
}
