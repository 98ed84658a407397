/**
 * Decides whether devices share a reduction, matmul or linear, and the layouts of its operands with which each
 * device reduces or contracts its own share of a sharded axis.
 */
import { type DIDType, isDID, type Tensor, withoutReductions } from "../../ir/domain.ts";
import {
  addShare,
  keepShares,
  layout,
  type Layout,
  type LayoutShare,
  layoutOf,
  sameLayout,
  sameShares,
} from "../../ir/layout.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { LinearOp, MatmulOp, ReductionOp } from "../../ir/ops/op.ts";
import { type CutAxis, cutOf, isCut, wholeAxis, withTypes } from "../../ir/parts.ts";
import { isWhole } from "../../ir/shards.ts";
import { at } from "../../support/invariant.ts";
import { imagesOf } from "./layouts.ts";
import { sameMesh } from "./sharding.ts";

type SharedOp = ReductionOp | MatmulOp | LinearOp;

/**
 * The layout of each operand with a reduced axis. Null if the devices share nothing, or if one collective implements
 * the op.
 *
 * Devices share a reduced axis that the operand shards, and a contracted axis that both operands shard alike. They also
 * share an axis if the output's reduction axis has a DID type, as nvFuser propagates it; an operand with another
 * layout is then moved.
 */
export function sharedPlaces(op: SharedOp, tensors: readonly Tensor[]): readonly Layout[] | null {
  const output = at(tensors, op.output);
  // stream-parallel-type handles the chunks of a reduced axis.
  if (output.domain.loop.some((axis) => axis.iterType === "reduction" && axis.parallelType === "Stream")) return null;
  return op.kind === "Reduction" ? reductionPlaces(op, tensors) : contractionPlaces(op, tensors);
}

function reductionPlaces(op: ReductionOp, tensors: readonly Tensor[]): readonly Layout[] | null {
  const operand = at(tensors, at(op.inputs, 0));
  const output = at(tensors, op.output);
  const place = layoutOf(operand);
  if (place === null) return null;
  const marks = sameMesh(operand.mesh, output.mesh) ? marksOn(op, tensors) : [];
  let marked = place;
  for (const mark of marks) {
    if (sameShares(marked.shares.get(mark.type), mark)) continue;
    marked =
      addShare(
        keepShares(marked, ({ type }) => type !== mark.type),
        mark,
      ) ?? marked;
  }
  const [first, ...others] = [...marked.shares.values()].filter(({ axis }) => op.axes.includes(axis));
  if (first === undefined) return null;
  const isCommunication = op.axes.length === 1 && others.length === 0 && isWhole(first);
  return isCommunication && marked === place ? null : [marked];
}

function contractionPlaces(op: MatmulOp | LinearOp, tensors: readonly Tensor[]): readonly Layout[] | null {
  const output = at(tensors, op.output);
  const operands = op.inputs.slice(0, 2).map((id) => at(tensors, id));
  const [x, y] = operands.map((operand) => layoutOf(operand));
  const contracted = operands.map((_, operand) => contractedAxis(op, operand, tensors));
  const [k, l] = contracted;
  if (output.mesh === null || x === null || y === null || x === undefined || y === undefined) return null;
  if (k === undefined || l === undefined) return null;
  const [mark] = marksOn(op, tensors);
  const shared = mark?.cut ?? cutAlike(x, k, y, l);
  if (shared === null) return null;
  const mesh = mark === undefined ? x.mesh : output.mesh;
  return [x, y].map((place, operand): Layout => {
    const axis = at(contracted, operand);
    const isShared = (type: DIDType): boolean => shared.parts.some((part) => part.type === type);
    const own = keepShares(place, ({ type }) => place.mesh.equals(mesh) && !isShared(type));
    return layout(mesh, own.axes.with(axis, shared));
  });
}

/** The shares of the output's reduction axes, by the numbers of the first operand's axes. */
function marksOn(op: SharedOp, tensors: readonly Tensor[]): readonly LayoutShare[] {
  const { domain, mesh } = at(tensors, op.output);
  if (mesh === null) return [];
  const axes = withoutReductions(at(tensors, at(op.inputs, 0)).domain.logical);
  const pairs = axisMap(op, tensors).filter(({ operand }) => operand === 0);
  const cuts = imagesOf(axes, pairs).map((image, i): CutAxis =>
    image?.iterType === "reduction" ? withTypes(cutOf(domain, image), isDID) : wholeAxis(at(axes, i).extent),
  );
  return [...layout(mesh, cuts).shares.values()];
}

/** The number of the operand's contracted axis. */
function contractedAxis(op: MatmulOp | LinearOp, operand: number, tensors: readonly Tensor[]): number {
  const axes = withoutReductions(at(tensors, at(op.inputs, operand)).domain.logical);
  const pair = axisMap(op, tensors).find((own) => own.operand === operand && own.consumer.iterType === "reduction");
  return axes.findIndex(({ id }) => id === pair?.producer.id);
}

/** How axis `k` of one operand is cut, if axis `l` of the other is cut so too, on the same mesh; otherwise null. */
function cutAlike(x: Layout, k: number, y: Layout, l: number): CutAxis | null {
  const [left, right] = [at(x.axes, k), at(y.axes, l)];
  const of = ({ mesh }: Layout, cut: CutAxis): Layout => layout(mesh, [cut]);
  return isCut(left) && sameLayout(of(x, left), of(y, right)) ? left : null;
}
