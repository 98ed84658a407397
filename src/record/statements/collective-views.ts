/**
 * The views of a collective's two sides. Axes of one element (sharded and reduced ones) say nothing and are dropped. Where a side
 * has one part per member, the axis that counts them comes first: the axis that the other side shards.
 *
 *   Allgather       [DIDx, M]    -> [D, M]    axis 0 of the output: sharded in the input, whole in the output
 *   ReduceScatter   [DIDx, D, M] -> [DIDx, M] axis 1 of the input: whole in the input, sharded in the output
 */
import { collectives, sideOf, type CollectiveType } from "../../commands/collectives.ts";
import { elementCount, type View } from "../../commands/view.ts";
import type { Communication } from "../../host/nodes.ts";
import { type AxisShard, axisShards, isWholeAxis, sameCut, sizedParts } from "../../ir/axis-shards.ts";
import { isDID, type IterDomain, type Tensor, withoutReductions } from "../../ir/domain.ts";
import { at } from "../../support/invariant.ts";
import { shapeText } from "../launch.ts";
import { evaluate, fail, type Recorder, tensorOf } from "../recorder.ts";
import { cutAxis, splitView, squeezeView } from "../views.ts";

type SideName = "input" | "output";

type Sides = { readonly [S in SideName]: View | null };

/** Throws `size-mismatch` where a side does not hold what the kind of collective needs. */
export function collectiveViews(
  recorder: Recorder,
  statement: Communication,
  type: CollectiveType,
  root: number | null,
  sides: Sides,
): Sides {
  const { splitsInput, splitsOutput } = collectives[type];
  const shape = (side: SideName, other: SideName, splits: boolean): View | null => {
    const view = sides[side];
    if (view === null || !splits) return view && squeezeView(view);
    const [own, opposite] = [tensorOf(recorder, statement[side]), tensorOf(recorder, statement[other])];
    const parts = membersWith(recorder, statement, type, root, other).length;
    return requireParts(recorder, side, partsFirst(recorder, view, own, opposite, type), parts);
  };
  const input = shape("input", "output", splitsInput);
  const output = shape("output", "input", splitsOutput);
  if (input !== null && output !== null) {
    requireEqualParts(recorder, partCount(input, splitsInput), partCount(output, splitsOutput));
  }
  return { input, output };
}

/** The positions of the members that have a view on `side`. */
export function membersWith(
  recorder: Recorder,
  statement: Communication,
  type: CollectiveType,
  root: number | null,
  side: SideName,
): readonly number[] {
  return statement.team.flatMap((_, position) => {
    const has = sideOf(type, side, root, position);
    const present =
      has === "required" || (has === "optional" && rootTakesPart(recorder, statement, type, side, position));
    return present ? [position] : [];
  });
}

/**
 * Whether the root at `position` has a share of a side that it may lack: it lies on that side's mesh. On a mesh of two dimensions it
 * may lie there and yet be none of the devices that share what is moved; then it is one more than those.
 */
export function rootTakesPart(
  recorder: Recorder,
  statement: Communication,
  type: CollectiveType,
  side: SideName,
  position: number,
): boolean {
  const { team } = statement;
  const part = tensorOf(recorder, statement[side]);
  const whole = tensorOf(recorder, statement[side === "input" ? "output" : "input"]);
  const { mesh } = part;
  if (mesh === null || !mesh.has(at(team, position))) return false;
  const { reduces, splitsInput, splitsOutput } = collectives[type];
  // What is neither split nor reduced is the same on every device of the mesh, whatever cuts its axes.
  if (!reduces && !splitsInput && !splitsOutput) return true;
  const { shard } = countedShard(whole, part, type, side === "input" && reduces);
  return shard === null || team.length <= mesh.size(shard.type);
}

interface CountedShard {
  /** The position of the axis that counts the parts, of the axes that the whole side has at run time. */
  readonly axis: number;
  /** How the other side cuts it; null where no axis says so, as in hand-built programs without DID types. */
  readonly shard: AxisShard | null;
}

/**
 * The axis whose counterpart in `part` is sharded where `whole` is not, or otherwise: it counts the parts of the whole side. Where no
 * axis says so it is the outermost. Of a reduction's input (`isReduced`) the sharded axis is one that `whole` does not have.
 */
function countedShard(whole: Tensor, part: Tensor, type: CollectiveType, isReduced = false): CountedShard {
  const shards = axisShards(part);
  if (isReduced) {
    const axes = withoutReductions(part.domain.logical);
    const counterparts = alignAxes(part, whole, type);
    const shard = shards.find(({ axis }) => counterparts[axes.findIndex(({ id }) => id === axis.id)] === undefined);
    return { axis: 0, shard: shard ?? null };
  }
  const axes = withoutReductions(whole.domain.logical);
  const counterparts = alignAxes(whole, part, type);
  const own = axisShards(whole);
  for (const [axis, { id }] of axes.entries()) {
    const shard = shards.find(
      (cut) =>
        cut.axis.id === counterparts[axis]?.id &&
        // Between meshes, types that cut alike may have other names.
        !own.some(
          (other) =>
            other.axis.id === id && whole.mesh?.size(other.type) === part.mesh?.size(cut.type) && sameCut(other, cut),
        ),
    );
    if (shard !== undefined) return { axis, shard };
  }
  return { axis: 0, shard: null };
}

/** The view with the axis of the parts outermost: one index per device of the other side. */
function partsFirst(recorder: Recorder, view: View, own: Tensor, opposite: Tensor, type: CollectiveType): View {
  const { axis, shard } = countedShard(own, opposite, type);
  if (shard === null || isWholeAxis(shard) || opposite.mesh === null) return splitView(view, axis);
  const size = evaluate(recorder, shard.axis.extent);
  const parts = sizedParts(opposite.domain, shard.axis, size);
  const outer = parts
    .slice(
      0,
      parts.findIndex(({ id }) => id === shard.part),
    )
    .reduce((product, { extent, parallelType }) => (isDID(parallelType) ? product : product * extent), 1);
  const devices = opposite.mesh.size(shard.type);
  if (at(view.shape, axis) % (outer * devices) !== 0) {
    return fail(recorder, {
      code: "size-mismatch",
      message: "a communication does not divide an axis among its members",
      found: `${at(view.shape, axis)} elements for ${devices} devices`,
      expected: `a multiple of ${outer * devices}`,
      help: "give both sides the same extents, and splits that divide them",
    });
  }
  return splitView(cutAxis(view, axis, outer, devices), axis + 1);
}

/** For each axis of `own` the axis of `other` that holds the same index; a reduced axis has none. */
function alignAxes(own: Tensor, other: Tensor, type: CollectiveType): readonly (IterDomain | undefined)[] {
  const axes = withoutReductions(own.domain.logical);
  const kept: readonly (IterDomain | undefined)[] = withoutReductions(other.domain.logical);
  if (!collectives[type].reduces || kept.length === axes.length) return kept;
  // The reduced axis stays in the output's logical domain, as in nvFuser, or was dropped (by a squeeze): then it is the sharded one.
  if (other.domain.logical.length === axes.length) {
    return other.domain.logical.map((axis) => (axis.iterType === "reduction" ? undefined : axis));
  }
  const shards = axisShards(own);
  const without = (dropped: number): readonly (IterDomain | undefined)[] => kept.toSpliced(dropped, 0, undefined);
  const reduced = axes.findIndex(({ parallelType }, i) => {
    if (!isDID(parallelType)) return false;
    // All other sharded axes are cut alike on both sides. Between meshes the types may have other names.
    const counterparts = without(i);
    return shards.every(({ axis: { id }, type: cut }) => {
      const position = axes.findIndex((axis) => axis.id === id);
      return position === i || isCutInto(other, counterparts[position], own.mesh?.size(cut) ?? 1);
    });
  });
  return reduced < 0 ? kept : without(reduced);
}

/** Whether one share of the axis lies on each of so many devices. */
function isCutInto(tensor: Tensor, axis: IterDomain | undefined, devices: number): boolean {
  return axisShards(tensor).some(({ axis: { id }, type }) => id === axis?.id && tensor.mesh?.size(type) === devices);
}

function requireParts(recorder: Recorder, side: SideName, view: View, parts: number): View {
  if (view.shape[0] === parts) return view;
  return fail(recorder, {
    code: "size-mismatch",
    message: `the ${side} of a communication does not have one part per member of its team`,
    found: `${view.shape[0] ?? 1} parts of ${shapeText(view.shape.slice(1))}`,
    expected: `${parts} parts`,
    help: "give the axis that is gathered or scattered the size of the team",
  });
}

/** The elements of the whole side, or of one of its parts. */
function partCount({ shape }: View, splits: boolean): number {
  return splits ? elementCount(shape) / at(shape, 0) : elementCount(shape);
}

function requireEqualParts(recorder: Recorder, input: number, output: number): void {
  if (input === output) return;
  fail(recorder, {
    code: "size-mismatch",
    message: "the sides of a communication do not hold equally many elements",
    found: `${input} elements a part in the input, ${output} in the output`,
    expected: "parts of one size",
    help: "give both sides the same shape but for the axes that are gathered, scattered or reduced",
  });
}
