/** The table of op kinds, and the output that a kind's row infers for an op. */
import type { Tensor } from "../domain.ts";
import type { Call } from "./call.ts";
import { binaryRow } from "./kinds/elementwise/binary.ts";
import { broadcastRow } from "./kinds/views/broadcast.ts";
import { fullRow } from "./kinds/creation/full.ts";
import { iotaRow } from "./kinds/creation/iota.ts";
import { randomBitsRow } from "./kinds/creation/random-bits.ts";
import { castRow } from "./kinds/elementwise/cast.ts";
import { catRow } from "./kinds/views/cat.ts";
import { expandRow } from "./kinds/views/expand.ts";
import { gatherRow } from "./kinds/indexing/gather.ts";
import { indexSelectRow } from "./kinds/indexing/index-select.ts";
import { linearRow } from "./kinds/contractions/linear.ts";
import { matmulRow } from "./kinds/contractions/matmul.ts";
import { padRow } from "./kinds/views/pad.ts";
import { permuteRow } from "./kinds/views/permute.ts";
import { reductionRow } from "./kinds/reductions/reduction.ts";
import { reshapeRow } from "./kinds/views/reshape.ts";
import { scatterAddRow } from "./kinds/indexing/scatter-add.ts";
import { selectRow } from "./kinds/views/select.ts";
import { setRow } from "./kinds/views/set.ts";
import { sdpaBackwardRow } from "./kinds/attention/sdpa-backward.ts";
import { sdpaRow } from "./kinds/attention/sdpa.ts";
import { sliceRow } from "./kinds/views/slice.ts";
import { squeezeRow } from "./kinds/views/squeeze.ts";
import { ternaryRow } from "./kinds/elementwise/ternary.ts";
import { unaryRow } from "./kinds/elementwise/unary.ts";
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
