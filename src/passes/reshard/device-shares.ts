/**
 * Decides whether devices share a reduction, matmul or linear, and the placements of its operands with which each
 * device reduces or contracts its own share of a sharded axis.
 */
import { isWholeAxis } from "../../ir/axis-shards.ts";
import { type DIDType, type Tensor, withoutReductions } from "../../ir/domain.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { LinearOp, MatmulOp, ReductionOp } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import {
  areCompatible,
  type Cut,
  imagesOf,
  type Placement,
  placementOf,
  reducedCuts,
  sameShares,
} from "./placement.ts";
import { sameMesh } from "./sharding.ts";

type SharedOp = ReductionOp | MatmulOp | LinearOp;

/**
 * The placement of each operand with a reduced axis. Null if the devices share nothing, or if one collective implements
 * the op.
 *
 * Devices share a reduced axis that the operand shards, and a contracted axis that both operands shard alike. They also
 * share an axis if the output's reduction axis has a DID type, as nvFuser propagates it; an operand with another
 * placement is then moved.
 */
export function sharedPlaces(op: SharedOp, tensors: readonly Tensor[]): readonly Placement[] | null {
  const output = at(tensors, op.output);
  // stream-parallel-type handles the chunks of a reduced axis.
  if (output.domain.loop.some((axis) => axis.iterType === "reduction" && axis.parallelType === "Stream")) return null;
  return op.kind === "Reduction" ? reductionPlaces(op, tensors) : contractionPlaces(op, tensors);
}

function reductionPlaces(op: ReductionOp, tensors: readonly Tensor[]): readonly Placement[] | null {
  const operand = at(tensors, at(op.inputs, 0));
  const output = at(tensors, op.output);
  const place = placementOf(operand, withoutReductions(operand.domain.logical));
  if (place === null) return null;
  const marks = sameMesh(operand.mesh, output.mesh) ? marksOn(op, 0, tensors) : new Map<DIDType, Cut>();
  const cuts = new Map(place.cuts);
  for (const [type, mark] of marks) {
    const others = [...cuts].filter(([other]) => other !== type);
    if (sameShares(cuts.get(type), mark) || !others.every(([, cut]) => areCompatible(cut, mark))) continue;
    cuts.set(type, mark);
  }
  const reduced = [...cuts.values()].filter(({ axis }) => op.axes.includes(axis));
  const [first] = reduced;
  if (first === undefined) return null;
  const isCommunication = op.axes.length === 1 && reduced.length === 1 && isWholeAxis(first);
  const isInPlace = [...cuts].every(([type, cut]) => place.cuts.get(type) === cut);
  return isCommunication && isInPlace ? null : [{ mesh: place.mesh, cuts }];
}

function contractionPlaces(op: MatmulOp | LinearOp, tensors: readonly Tensor[]): readonly Placement[] | null {
  const output = at(tensors, op.output);
  const operands = op.inputs.slice(0, 2).map((id) => at(tensors, id));
  const places = operands.map((operand) => placementOf(operand, withoutReductions(operand.domain.logical)));
  const contracted = operands.map((_, operand) => contractedAxis(op, operand, tensors));
  const [x, y] = places;
  const [k, l] = contracted;
  if (output.mesh === null || x === null || y === null || x === undefined || y === undefined) return null;
  if (k === undefined || l === undefined) return null;
  const marks = marksOn(op, 0, tensors);
  const shared = marks.size > 0 ? marks : cutAlike(x, k, y, l);
  if (shared.size === 0) return null;
  const mesh = marks.size > 0 ? output.mesh : x.mesh;
  return places.map((place, operand): Placement => {
    const axis = at(contracted, operand);
    const own = place !== null && place.mesh.equals(mesh) ? [...place.cuts] : [];
    const kept = own.filter(([type, cut]) => !shared.has(type) && cut.axis !== axis);
    const cuts = [...shared].map(([type, cut]): readonly [DIDType, Cut] => [type, { ...cut, axis }]);
    return { mesh, cuts: new Map([...kept, ...cuts]) };
  });
}

/** The cuts of the output's reduction axes, by the numbers of an operand's axes. */
function marksOn(op: SharedOp, operand: number, tensors: readonly Tensor[]): ReadonlyMap<DIDType, Cut> {
  const output = at(tensors, op.output);
  const axes = withoutReductions(at(tensors, at(op.inputs, operand)).domain.logical);
  const pairs = axisMap(op, tensors).filter((pair) => pair.operand === operand);
  return reducedCuts(output, imagesOf(axes, pairs));
}

/** The number of the operand's contracted axis. */
function contractedAxis(op: MatmulOp | LinearOp, operand: number, tensors: readonly Tensor[]): number {
  const axes = withoutReductions(at(tensors, at(op.inputs, operand)).domain.logical);
  const pair = axisMap(op, tensors).find((own) => own.operand === operand && own.consumer.iterType === "reduction");
  return axes.findIndex(({ id }) => id === pair?.producer.id);
}

/** The cuts of axis `k` of one operand, if axis `l` of the other has the same cuts on the same mesh; otherwise none. */
function cutAlike(x: Placement, k: number, y: Placement, l: number): ReadonlyMap<DIDType, Cut> {
  const left = [...x.cuts].filter(([, { axis }]) => axis === k);
  const right = [...y.cuts].filter(([, { axis }]) => axis === l);
  const isAlike =
    x.mesh.equals(y.mesh) &&
    left.length === right.length &&
    left.every(([type, cut]) => {
      const other = right.find(([candidate]) => candidate === type)?.[1];
      return other !== undefined && sameShares(cut, { ...other, axis: k });
    });
  return new Map(isAlike ? left : []);
}
