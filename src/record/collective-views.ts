/**
 * The views of a collective's two sides. Axes of one element (sharded and reduced ones) say nothing and are dropped. Where a side
 * has one part per member, the axis that counts them comes first: the axis that the other side shards.
 *
 *   Allgather       [DIDx, M]    -> [D, M]    axis 0 of the output: sharded in the input, whole in the output
 *   ReduceScatter   [DIDx, D, M] -> [DIDx, M] axis 1 of the input: whole in the input, sharded in the output
 */
import { collectiveRules, sideOf } from "../commands/collectives.ts";
import type { CollectiveType, View } from "../commands/transfer.ts";
import { elementCount } from "../commands/view.ts";
import type { Communication } from "../host/nodes.ts";
import { isDID, type IterDomain, type Tensor, withoutReductions } from "../ir/domain.ts";
import { at } from "../support/invariant.ts";
import { shapeText } from "./launch.ts";
import { fail, type Recorder, tensorOf } from "./recorder.ts";
import { splitView, squeezeView } from "./views.ts";

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
  const { splitsInput, splitsOutput } = collectiveRules[type];
  const shape = (side: SideName, other: SideName, splits: boolean): View | null => {
    const view = sides[side];
    if (view === null || !splits) return view && squeezeView(view);
    const [own, opposite] = [tensorOf(recorder, statement[side]), tensorOf(recorder, statement[other])];
    const parts = membersWith(recorder, statement, type, root, other).length;
    return requireParts(recorder, side, splitView(view, countedAxis(own, opposite, type)), parts);
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
  const { mesh } = tensorOf(recorder, statement[side]);
  return statement.team.flatMap((device, position) => {
    const has = sideOf(type, side, root, position);
    return has === "required" || (has === "optional" && mesh?.has(device) === true) ? [position] : [];
  });
}

/**
 * The axis of `whole` that counts the parts: its counterpart in `part` is sharded, and it is not sharded in the same way. Where no
 * axis says so, as in hand-built programs without DID axes, the outermost.
 */
function countedAxis(whole: Tensor, part: Tensor, type: CollectiveType): number {
  const axes = withoutReductions(whole.domain.logical);
  const counterparts = alignAxes(axes, part, type);
  const axis = axes.findIndex(({ parallelType }, i) => {
    const other = counterparts[i];
    return other !== undefined && isDID(other.parallelType) && other.parallelType !== parallelType;
  });
  return Math.max(axis, 0);
}

/** counterparts[i] is the axis of `part` that holds the same index as axes[i]; a reduced axis has none. */
function alignAxes(
  axes: readonly IterDomain[],
  part: Tensor,
  type: CollectiveType,
): readonly (IterDomain | undefined)[] {
  const kept: readonly (IterDomain | undefined)[] = withoutReductions(part.domain.logical);
  if (!collectiveRules[type].reduces || kept.length === axes.length) return kept;
  // The reduced axis stays in the output's logical domain, as in nvFuser, or was dropped (by a squeeze): then it is the sharded one.
  if (part.domain.logical.length === axes.length) {
    return part.domain.logical.map((axis) => (axis.iterType === "reduction" ? undefined : axis));
  }
  const without = (dropped: number): readonly (IterDomain | undefined)[] => kept.toSpliced(dropped, 0, undefined);
  const reduced = axes.findIndex(({ parallelType }, i) => {
    if (!isDID(parallelType)) return false;
    // All other sharded axes stay where they are.
    const counterparts = without(i);
    return axes.every(
      (axis, j) => j === i || !isDID(axis.parallelType) || counterparts[j]?.parallelType === axis.parallelType,
    );
  });
  return reduced < 0 ? kept : without(reduced);
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
