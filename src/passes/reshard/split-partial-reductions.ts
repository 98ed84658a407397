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
import { isWholeAxis } from "../../ir/axis-shards.ts";
import { type AxisShape, type DIDType, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { LinearOp, MatmulOp, ReductionOp } from "../../ir/ops/op.ts";
import { foldCeilDiv } from "../../ir/scalar/fold.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { at, invariant } from "../../support/invariant.ts";
import { addSerialTensor, editFusion, type FusionEdit } from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";
import { streamPart } from "../stream-loops/stream-part.ts";
import { type DeviceParts, reduceOverDevices } from "./device-reductions.ts";
import { sharedPlaces } from "./device-shares.ts";
import { addBias, withoutBias } from "./linear-bias.ts";
import {
  addCopy,
  areCompatible,
  type Cut,
  moveTo,
  type Placement,
  placementOf,
  sameShares,
  streamLike,
  wholeCut,
} from "./placement.ts";

export const splitPartialReductions: Pass<"checked", "checked"> = {
  name: "split-partial-reductions",
  from: "checked",
  to: "checked",
  run: (fusion) => {
    const edit = editFusion(fusion);
    let changed = false;
    for (const op of fusion.ops) {
      const isShared = op.kind === "Reduction" || op.kind === "Matmul" || op.kind === "Linear";
      const places = isShared ? sharedPlaces(op, edit.tensors) : null;
      if (!isShared || places === null) {
        edit.ops.push(op);
        continue;
      }
      changed = true;
      const inputs = op.inputs.map((id, operand) => {
        const place = places[operand];
        return place === undefined ? id : movedOperand(edit, id, place);
      });
      if (op.kind === "Reduction") splitReduction(edit, { ...op, inputs });
      else splitContraction(edit, { ...op, inputs });
    }
    return changed ? { ...fusion, ...edit } : fusion;
  },
};

/** The operand with the required placement, moved by a Set if necessary. */
function movedOperand(edit: FusionEdit, id: TensorId, place: Placement): TensorId {
  const tensor = at(edit.tensors, id);
  const axes = withoutReductions(tensor.domain.logical);
  const own = placementOf(tensor, axes);
  const types = new Set([...(own?.cuts.keys() ?? []), ...place.cuts.keys()]);
  const lies =
    own?.mesh.equals(place.mesh) === true &&
    [...types].every((type) => sameShares(own.cuts.get(type), place.cuts.get(type)));
  if (lies) return id;
  const moved = addSerialTensor(edit, tensor, axes, place.mesh);
  moveTo(edit, moved, moved.domain.logical, place, null);
  edit.ops.push({ kind: "Set", inputs: [id], output: moved.id });
  return moved.id;
}

/** An axis of a tensor of partial results. */
interface PartAxis {
  readonly shape: AxisShape;
  /** The number of an output axis, the DID type whose devices the axis numbers, or null for a reduced axis. */
  readonly slot: number | DIDType | null;
  readonly cuts: readonly (readonly [DIDType, Cut])[];
}

function splitReduction(edit: FusionEdit, op: ReductionOp): void {
  const output = at(edit.tensors, op.output);
  const source = at(edit.tensors, at(op.inputs, 0));
  const axes = withoutReductions(source.domain.logical);
  const place = placementOf(source, axes);
  invariant(place !== null, "a shared operand has a mesh", op);
  const cutsOf = (number: number): readonly (readonly [DIDType, Cut])[] =>
    [...place.cuts].filter(([, { axis }]) => axis === number);
  // Each device has one index of an axis that one type cuts as a whole. Only the reduction over the devices reduces it.
  const isOverDevices = (number: number): boolean => {
    const [first, ...others] = cutsOf(number);
    return first !== undefined && others.length === 0 && isWholeAxis(first[1]);
  };
  let kept = 0;
  const parts = axes.flatMap((shape, number): readonly PartAxis[] => {
    const cuts = cutsOf(number);
    if (!op.axes.includes(number)) return [{ shape, slot: kept++, cuts }];
    const [first] = cuts;
    if (first !== undefined && isOverDevices(number)) return [{ shape, slot: first[0], cuts }];
    return reducedParts(shape, cuts);
  });
  const own = op.axes.filter((number) => !isOverDevices(number));
  const slots = slotsOf(parts);
  if (own.length === 0) return reduceOverDevices(edit, { tensor: source.id, slots }, op.op, output);
  const made = addParts(edit, output, place, parts);
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
    const own = withoutReductions(tensor.domain.logical);
    const place = placementOf(tensor, own);
    invariant(place !== null, "a shared operand has a mesh", op);
    return { own, place };
  });
  const { own, place } = at(sources, reduced.operand);
  const contracted = [...place.cuts].filter(([, { axis }]) => own[axis]?.id === reduced.producer.id);
  const shared = new Set(contracted.map(([type]) => type));
  // The output's other axes are cut like the operands', then like the output's own.
  const known = sources.flatMap(({ own: from, place: { cuts } }, operand) =>
    [...cuts].flatMap(([type, cut]): readonly (readonly [DIDType, Cut])[] => {
      const pair = pairs.find((each) => each.operand === operand && each.producer.id === from[cut.axis]?.id);
      const axis = pair === undefined || pair.broadcast ? -1 : axes.findIndex(({ id }) => id === pair.consumer.id);
      return axis < 0 ? [] : [[type, { ...cut, axis }]];
    }),
  );
  const wanted = output.mesh?.equals(place.mesh) === true ? [...(placementOf(output, axes)?.cuts ?? [])] : [];
  const cuts = new Map<DIDType, Cut>();
  for (const [type, cut] of [...known, ...wanted]) {
    const fits = [...cuts.values()].every((other) => areCompatible(other, cut));
    if (!shared.has(type) && !cuts.has(type) && fits) cuts.set(type, cut);
  }
  const parts = [
    ...axes.map((shape, slot): PartAxis => ({
      shape,
      slot,
      cuts: [...cuts].filter(([, { axis }]) => axis === slot),
    })),
    ...reducedParts(reduced.consumer, contracted),
  ];
  const made = addParts(edit, output, place, parts);
  edit.ops.push({ ...contraction, output: made.tensor });
  const [, , bias] = op.inputs;
  if (bias === undefined) return reduceOverDevices(edit, made, "sum", output);
  const sum = addCopy(edit, output);
  reduceOverDevices(edit, made, "sum", sum);
  addBias(edit, sum.id, bias, output);
}

/**
 * The axes that replace a cut reduced axis: one per DID type, for the devices' results, and the share that each device
 * reduces.
 */
function reducedParts({ extent }: AxisShape, cuts: readonly (readonly [DIDType, Cut])[]): readonly PartAxis[] {
  const devices = cuts.reduce((count, [, cut]) => count * cut.devices, 1);
  return [
    ...cuts.map(([type, cut]): PartAxis => ({
      shape: { extent: constant(cut.devices), iterType: "iteration" },
      slot: type,
      cuts: [[type, cut]],
    })),
    { shape: { extent: foldCeilDiv(extent, constant(devices)), iterType: "reduction" }, slot: null, cuts: [] },
  ];
}

function slotsOf(parts: readonly PartAxis[]): readonly (number | DIDType)[] {
  return parts.flatMap(({ slot }) => (slot === null ? [] : [slot]));
}

/**
 * Adds the tensor of partial results. It has the output's Stream axis, so that an iteration reduces the partial results
 * of its chunk.
 */
function addParts(edit: FusionEdit, output: Tensor, { mesh }: Placement, parts: readonly PartAxis[]): DeviceParts {
  const tensor = addSerialTensor(
    edit,
    output,
    parts.map(({ shape }) => shape),
    mesh,
    "partial sum",
  );
  const slots = slotsOf(parts);
  const own = withoutReductions(tensor.domain.logical);
  const present = parts.filter(({ slot }) => slot !== null);
  const cuts = present.flatMap(({ slot, cuts: given }, number) =>
    given.map(([type, cut]): readonly [DIDType, Cut] => [
      type,
      typeof slot === "number" ? { ...cut, axis: number } : wholeCut(at(own, number), number, cut.devices),
    ]),
  );
  const stream = streamPart(output);
  const streamed = withoutReductions(output.domain.logical).findIndex(({ id }) => id === stream?.axis.id);
  const axis = streamed < 0 ? undefined : own[slots.indexOf(streamed)];
  moveTo(edit, tensor, own, { mesh, cuts: new Map(cuts) }, streamLike(output, stream, axis));
  return { tensor: tensor.id, slots };
}
