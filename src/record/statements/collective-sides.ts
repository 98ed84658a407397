/**
 * The input and output of a collective on this rank. Axes of one element, such as sharded and reduced ones, are
 * dropped. If a side has one slice per rank, the axis that numbers the slices comes first. It is the axis that the
 * other side shards.
 *
 *   Allgather       [DIDx, M]    -> [D, M]    axis 0 of the output: sharded in the input, whole in the output
 *   ReduceScatter   [DIDx, D, M] -> [DIDx, M] axis 1 of the input: whole in the input, sharded in the output
 */
import { collectives, sideOf, type SlicedType } from "../../commands/collectives.ts";
import { isEmpty, type View } from "../../commands/view.ts";
import { agreed } from "../../host/alike/classes.ts";
import type { Communication } from "../../host/nodes.ts";
import { type DIDType, isDID, type IterDomain, type Tensor, withoutReductions } from "../../ir/domain.ts";
import { sizedCut } from "../../ir/parts.ts";
import { isWhole, sameShare, type Shard, shardsOf } from "../../ir/shards.ts";
import { at } from "../../support/invariant.ts";
import { localShapeText } from "../checks.ts";
import { evaluate, failRecording, type Recorder } from "../recorder.ts";
import { tensorOf, viewOf } from "../tensors.ts";
import { cutAxis, splitView, squeezeView } from "../views.ts";
import { elementCount } from "../../numerics/tensor/host-tensor.ts";

export type Side = "input" | "output";

/** A Communication with its root evaluated. */
export interface PostedCollective {
  readonly statement: Communication;
  readonly type: SlicedType;
  /** A position in the team; null for types without a root. */
  readonly root: number | null;
  /** The team on each rank that is recorded, or one for all. */
  readonly teams: readonly (readonly number[])[];
}

/**
 * The views that the rank at its position reads and writes. Throws `size-mismatch` if a side has the wrong number of
 * elements or slices.
 */
export function collectiveSides(
  recorder: Recorder,
  posted: PostedCollective,
  positions: readonly number[],
): { readonly [S in Side]: View | null } {
  const [input, output] = [
    sideView(recorder, posted, "input", positions),
    sideView(recorder, posted, "output", positions),
  ];
  const { splitsInput, splitsOutput } = collectives[posted.type];
  if (input !== null && output !== null) {
    requireEqualParts(recorder, partSize(input, splitsInput), partSize(output, splitsOutput));
  }
  return { input, output };
}

/** The positions of the ranks that have a view on `side`, in team order. */
export function positionsWith(recorder: Recorder, posted: PostedCollective, side: Side): readonly number[] {
  return [...posted.statement.team.keys()].filter((position) => hasSide(recorder, posted, side, [position]));
}

/** How many ranks have a view on `side`. All but the root are alike: a team may have thousands. */
function countWith(recorder: Recorder, posted: PostedCollective, side: Side): number {
  const { root, statement } = posted;
  const others = statement.team.length - (root === null ? 0 : 1);
  const other = root === 0 ? 1 : 0;
  const ofOthers = others > 0 && hasSide(recorder, posted, side, [other]) ? others : 0;
  return ofOthers + (root !== null && hasSide(recorder, posted, side, [root]) ? 1 : 0);
}

/** Whether a side of the rank at `position` has no elements. */
export function hasEmptySide(recorder: Recorder, posted: PostedCollective, positions: readonly number[]): boolean {
  return (["input", "output"] as const).some(
    (side) => hasSide(recorder, posted, side, positions) && isEmpty(viewOf(recorder, posted.statement[side])),
  );
}

/** `positions`: that of each rank that is recorded, or one for all. Its team's rank there has the side, or lacks it. */
function hasSide(recorder: Recorder, posted: PostedCollective, side: Side, positions: readonly number[]): boolean {
  const { statement, type, teams, root } = posted;
  const first = at(positions, 0);
  const each = <T>(decide: (position: number, team: readonly number[]) => T): T =>
    agreed(
      Array.from({ length: Math.max(positions.length, teams.length) }, (_, k) =>
        decide(positions[k] ?? first, teams[k] ?? at(teams, 0)),
      ),
    );
  // Between two meshes, a rank may be on one of them alone.
  if (type === "AllToAllV") {
    const { mesh } = tensorOf(recorder, statement[side]);
    return each((position, team) => mesh?.has(at(team, position)) !== false);
  }
  const demand = agreed(positions.map((position) => sideOf(type, side, root, position)));
  if (demand !== "optional") return demand === "required";
  return each((position, team) => rootHasShare(recorder, posted, side, at(team, position)));
}

/**
 * Whether the rank `root` holds a share of a side that a root may lack: it must be in that side's mesh. In a
 * mesh of two dimensions the root may be on the mesh without being one of the devices that share the data. The team
 * then has one more rank than there are shares.
 */
function rootHasShare(recorder: Recorder, { statement, type }: PostedCollective, side: Side, root: number): boolean {
  const { team } = statement;
  const part = tensorOf(recorder, statement[side]);
  const whole = tensorOf(recorder, statement[opposite(side)]);
  const { mesh } = part;
  if (mesh === null || !mesh.has(root)) return false;
  const { reduces, splitsInput, splitsOutput } = collectives[type];
  // Data that is neither split nor reduced is the same on every device of the mesh, whatever shards its axes.
  if (!reduces && !splitsInput && !splitsOutput) return true;
  const { shard } = partAxis(whole, part, type, side === "input" && reduces);
  return shard === null || team.length <= mesh.size(shard.type);
}

function opposite(side: Side): Side {
  return side === "input" ? "output" : "input";
}

function sideView(recorder: Recorder, posted: PostedCollective, side: Side, positions: readonly number[]): View | null {
  if (!hasSide(recorder, posted, side, positions)) return null;
  const { statement, type } = posted;
  const view = viewOf(recorder, statement[side]);
  const { splitsInput, splitsOutput } = collectives[type];
  if (!(side === "input" ? splitsInput : splitsOutput)) return squeezeView(view);
  const parts = countWith(recorder, posted, opposite(side));
  return requireParts(recorder, side, partsFirst(recorder, posted, side, view), parts);
}

/** The view with the axis of slices outermost: one index per device of the other side. */
function partsFirst(recorder: Recorder, { statement, type }: PostedCollective, side: Side, view: View): View {
  const [own, other] = [tensorOf(recorder, statement[side]), tensorOf(recorder, statement[opposite(side)])];
  const { axis, shard } = partAxis(own, other, type);
  if (shard === null || isWhole(shard) || other.mesh === null) return splitView(view, axis);
  const size = evaluate(recorder, shard.axis.extent);
  const { parts } = sizedCut(other.domain, shard.axis, size);
  const outer = parts
    .slice(
      0,
      parts.findIndex((part) => part.type === shard.type),
    )
    .reduce((product, part) => (isDID(part.type) ? product : product * part.extent), 1);
  const devices = other.mesh.size(shard.type);
  if (at(view.shape, axis) % (outer * devices) !== 0) {
    return failRecording(recorder, "size-mismatch", "a communication does not divide an axis evenly among its ranks", {
      found: `${at(view.shape, axis)} elements for ${devices} devices`,
      expected: `a multiple of ${outer * devices}`,
      help: "give both sides the same extents, and splits that divide them",
    });
  }
  return splitView(cutAxis(view, axis, outer, devices), axis + 1);
}

function requireParts(recorder: Recorder, side: Side, view: View, parts: number): View {
  if (view.shape[0] === parts) return view;
  return failRecording(recorder, {
    code: "size-mismatch",
    message: `the ${side} of a communication does not have one slice per rank of its team`,
    found: `${view.shape[0] ?? 1} slices of ${localShapeText(view.shape.slice(1))}`,
    expected: `${parts} parts`,
    help: "give the axis that is gathered or scattered the size of the team",
  });
}

/** The number of elements of a side, or of one slice if the side is split. */
function partSize({ shape }: View, splits: boolean): number {
  return splits ? elementCount(shape) / at(shape, 0) : elementCount(shape);
}

function requireEqualParts(recorder: Recorder, input: number, output: number): void {
  if (input === output) return;
  failRecording(recorder, {
    code: "size-mismatch",
    message: "the input and output of a communication have different numbers of elements per rank",
    found: `${input} elements per rank in the input, ${output} in the output`,
    expected: "equal numbers",
    help: "give both sides the same shape, except for gathered, scattered or reduced axes",
  });
}

// Which axis of a collective's unsharded side numbers the per-rank slices. The sharding of the other side determines
// it.

interface PartAxis {
  /** The position among the axes that the unsharded side has at run time. */
  readonly axis: number;
  /** How the other side shards the axis; null if it has no DID type, as in some hand-built programs. */
  readonly shard: Shard | null;
}

/**
 * The axis of `whole` that is not sharded while its counterpart in `part` is; the outermost axis if there is none. If
 * `part` is the input of a reduction (`isReduced`), the sharded axis is one that `whole` lacks.
 */
function partAxis(whole: Tensor, part: Tensor, type: SlicedType, isReduced = false): PartAxis {
  const shards = shardsOf(part);
  if (isReduced) {
    const axes = withoutReductions(part.domain.logical);
    const counterparts = alignAxes(part, whole, type);
    const shard = shards.find(({ axis }) => counterparts[axes.findIndex(({ id }) => id === axis.id)] === undefined);
    return { axis: 0, shard: shard ?? null };
  }
  const axes = withoutReductions(whole.domain.logical);
  const counterparts = alignAxes(whole, part, type);
  const own = shardsOf(whole);
  for (const [axis, { id }] of axes.entries()) {
    const shard = shards.find(
      (cut) =>
        cut.axis.id === counterparts[axis]?.id &&
        !own.some(
          (other) => other.axis.id === id && areAlike(whole, other.type, part, cut.type) && sameShare(other, cut),
        ),
    );
    if (shard !== undefined) return { axis, shard };
  }
  return { axis: 0, shard: null };
}

/** For each axis of `own`, the axis of `other` with the same index. A reduced axis has none. */
export function alignAxes(own: Tensor, other: Tensor, type: SlicedType): readonly (IterDomain | undefined)[] {
  const axes = withoutReductions(own.domain.logical);
  const kept: readonly (IterDomain | undefined)[] = withoutReductions(other.domain.logical);
  if (!collectives[type].reduces || kept.length === axes.length) return kept;
  // The reduced axis stays in the output's logical domain, as in nvFuser. If a squeeze dropped it, it was the sharded
  // axis.
  if (other.domain.logical.length === axes.length) {
    return other.domain.logical.map((axis) => (axis.iterType === "reduction" ? undefined : axis));
  }
  const shards = shardsOf(own);
  const without = (dropped: number): readonly (IterDomain | undefined)[] => kept.toSpliced(dropped, 0, undefined);
  const reduced = axes.findIndex(({ parallelType }, i) => {
    if (!isDID(parallelType)) return false;
    // All other sharded axes have the same cut on both sides. On another mesh their types may have other names.
    const counterparts = without(i);
    return shards.every(({ axis: { id }, type: cut }) => {
      const position = axes.findIndex((axis) => axis.id === id);
      const counterpart = counterparts[position]?.id;
      return (
        position === i ||
        shardsOf(other).some((shard) => shard.axis.id === counterpart && areAlike(own, cut, other, shard.type))
      );
    });
  });
  return reduced < 0 ? kept : without(reduced);
}

/** Whether two DID types may mean the same dimension: on another mesh, one of as many devices may have another name. */
function areAlike(a: Tensor, type: DIDType, b: Tensor, other: DIDType): boolean {
  if (a.mesh === null || b.mesh === null || a.mesh.equals(b.mesh)) return type === other;
  return a.mesh.size(type) === b.mesh.size(other);
}
