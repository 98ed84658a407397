/**
 * Splits a reduction, matmul or linear over a sharded axis in two: each device reduces its own share, and one
 * collective then reduces these partial results.
 *
 *   T2[M, N, rK] = matmul(T0[M, K/DIDx], T1[K/DIDx, N])
 * becomes
 *   T3[M, N, DIDx, rK/D] = matmul(T0, T1)
 *   T2[M, N, rD] = reduction(T3, {2})
 *
 * device-shares.ts decides when. A bias is added once, to the sum. Source: nvFuser's DecomposeReshardings
 * (decomposeRowParallelLinearWithBias, rFactorLoopSplits).
 */
import { type AxisShape, type DIDType, type Tensor, withoutReductions } from "../../ir/domain.ts";
import { addShare, layout, type Layout, type LayoutShare, layoutOf } from "../../ir/layout.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { LinearOp, MatmulOp, ReductionOp } from "../../ir/ops/op.ts";
import { foldCeilDiv } from "../../ir/scalar/fold.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { type CutAxis, wholeAxis } from "../../ir/parts.ts";
import { didTypesOf, isWhole } from "../../ir/shards.ts";
import { at, invariant } from "../../support/invariant.ts";
import { addSerialTensor, type FusionEdit } from "../edit/tensor-edit.ts";
import { streamPart } from "../../ir/stream.ts";
import { type DeviceParts, reduceOverDevices } from "./device-reductions.ts";
import { addBias, withoutBias } from "./linear-bias.ts";
import { addCopy, moveTo, streamOn } from "./layouts.ts";

/** Adds what computes the op, whose operands lie as `sharedPlaces` says. */
export function splitOverDevices(edit: FusionEdit, op: ReductionOp | MatmulOp | LinearOp): void {
  if (op.kind === "Reduction") splitReduction(edit, op);
  else splitContraction(edit, op);
}

/** An axis of a tensor of partial results. */
interface PartAxis {
  readonly shape: AxisShape;
  /** The number of an output axis, the DID type whose devices the axis numbers, or null for a reduced axis. */
  readonly slot: number | DIDType | null;
  readonly cut: CutAxis;
}

function splitReduction(edit: FusionEdit, op: ReductionOp): void {
  const output = at(edit.tensors, op.output);
  const source = at(edit.tensors, at(op.inputs, 0));
  const place = layoutOf(source);
  invariant(place !== null, "a shared operand has a mesh", op);
  // Each device has one index of an axis that one type cuts as a whole. Only the reduction over the devices reduces it.
  const overDevices = (number: number): LayoutShare | null => {
    const [first, ...others] = [...place.shares.values()].filter(({ axis }) => axis === number);
    return first !== undefined && others.length === 0 && isWhole(first) ? first : null;
  };
  let kept = 0;
  const parts = withoutReductions(source.domain.logical).flatMap((shape, number): readonly PartAxis[] => {
    const cut = at(place.axes, number);
    if (!op.axes.includes(number)) return [{ shape, slot: kept++, cut }];
    const whole = overDevices(number);
    return whole === null ? reducedParts(shape, cut, place) : [{ shape, slot: whole.type, cut }];
  });
  const own = op.axes.filter((number) => overDevices(number) === null);
  const slots = slotsOf(parts);
  if (own.length === 0) return reduceOverDevices(edit, { tensor: source.id, slots }, op.op, output);
  const made = addPartial(edit, output, place, parts);
  edit.ops.push({ ...op, axes: own, output: made.tensor });
  reduceOverDevices(edit, made, op.op, output);
}

function splitContraction(edit: FusionEdit, op: MatmulOp | LinearOp): void {
  const output = at(edit.tensors, op.output);
  const contraction = withoutBias(op);
  const axes = withoutReductions(output.domain.logical);
  const pairs = axisMap(op, edit.tensors);
  const reduced = pairs.find(({ consumer }) => consumer.iterType === "reduction");
  invariant(reduced !== undefined, "a contraction has a contracted axis", op);
  const sources = contraction.inputs.map((id) => {
    const tensor = at(edit.tensors, id);
    const place = layoutOf(tensor);
    invariant(place !== null, "a shared operand has a mesh", op);
    return { own: withoutReductions(tensor.domain.logical), place };
  });
  const { own, place } = at(sources, reduced.operand);
  const contracted = at(
    place.axes,
    own.findIndex(({ id }) => id === reduced.producer.id),
  );
  const shared = new Set(didTypesOf(contracted));
  // The output's other axes are cut like the operands', then like the output's own.
  const known = sources.flatMap(({ own: from, place: { shares } }, operand) =>
    [...shares.values()].flatMap((share): readonly LayoutShare[] => {
      const pair = pairs.find((each) => each.operand === operand && each.producer.id === from[share.axis]?.id);
      const axis = pair === undefined || pair.broadcast ? -1 : axes.findIndex(({ id }) => id === pair.consumer.id);
      return axis < 0 ? [] : [{ ...share, axis }];
    }),
  );
  const wanted = output.mesh?.equals(place.mesh) === true ? [...(layoutOf(output)?.shares.values() ?? [])] : [];
  let made = layout(
    place.mesh,
    axes.map(({ extent }) => wholeAxis(extent)),
  );
  for (const share of [...known, ...wanted]) if (!shared.has(share.type)) made = addShare(made, share) ?? made;
  const parts = [
    ...axes.map((shape, slot): PartAxis => ({ shape, slot, cut: at(made.axes, slot) })),
    ...reducedParts(reduced.consumer, contracted, place),
  ];
  const partial = addPartial(edit, output, place, parts);
  edit.ops.push({ ...contraction, output: partial.tensor });
  const [, , bias] = op.inputs;
  if (bias === undefined) return reduceOverDevices(edit, partial, "sum", output);
  const sum = addCopy(edit, output);
  reduceOverDevices(edit, partial, "sum", sum);
  addBias(edit, sum.id, bias, output);
}

/**
 * The axes that replace a cut reduced axis: one per DID type, for the devices' results, and the share that each device
 * reduces.
 */
function reducedParts({ extent }: AxisShape, cut: CutAxis, { mesh }: Layout): readonly PartAxis[] {
  const types = didTypesOf(cut);
  const devices = types.reduce((count, type) => count * mesh.size(type), 1);
  const share = foldCeilDiv(extent, constant(devices));
  return [
    ...types.map((type): PartAxis => {
      const own = constant(mesh.size(type));
      return { shape: { extent: own, iterType: "iteration" }, slot: type, cut: wholeAxis(own, type) };
    }),
    { shape: { extent: share, iterType: "reduction" }, slot: null, cut: wholeAxis(share) },
  ];
}

function slotsOf(parts: readonly PartAxis[]): readonly (number | DIDType)[] {
  return parts.flatMap(({ slot }) => (slot === null ? [] : [slot]));
}

/**
 * Adds the tensor of partial results. It has the output's Stream axis, so that an iteration reduces the partial results
 * of its chunk.
 */
function addPartial(edit: FusionEdit, output: Tensor, { mesh }: Layout, parts: readonly PartAxis[]): DeviceParts {
  const tensor = addSerialTensor(
    edit,
    output,
    parts.map(({ shape }) => shape),
    mesh,
    "partial sum",
  );
  const slots = slotsOf(parts);
  const own = withoutReductions(tensor.domain.logical);
  const cuts = parts.flatMap(({ slot, cut }) => (slot === null ? [] : [cut]));
  const stream = streamPart(output);
  const streamed = withoutReductions(output.domain.logical).findIndex(({ id }) => id === stream?.axis.id);
  const axis = streamed < 0 ? undefined : own[slots.indexOf(streamed)];
  moveTo(edit, tensor, own, layout(mesh, cuts), streamOn(stream, axis));
  return { tensor: tensor.id, slots };
}
