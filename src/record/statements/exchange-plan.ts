/**
 * Which elements move where in a communication whose slices are not equal: uneven or empty shares, chunks whose
 * boundaries lie elsewhere than those of the shares, or sides that are cut along other axes (AllToAllV). Each rank that
 * writes gets the indices that its output holds from the ranks whose input has them: from itself if it can, else from
 * the next in team order, so that readers of equal copies take turns.
 *
 *   Allgather of i{7} over 3 ranks      shares 0 1 2 | 3 4 5 | 6, every rank receives the others'
 *   Allgather of chunk 1 of 4           indices 2 3: index 2 from rank 0, index 3 from rank 1
 *   ReduceScatter of i{7} over 3 ranks  rank 2 receives index 6 of all ranks' inputs and adds them in team order
 */
import { collectives } from "../../commands/collectives.ts";
import type { View } from "../../commands/view.ts";
import { indexInPart, sizedCut } from "../../ir/parts.ts";
import { countBelow, intersection, type Run, type Runs, sameRuns } from "../../ir/runs.ts";
import { agreed } from "../../host/alike/classes.ts";
import { isDID, type Tensor, withoutReductions } from "../../ir/domain.ts";
import { at } from "../../support/invariant.ts";
import type { AxisCut, AxisPair, Chunk, ExchangePlan } from "../actual-sizes.ts";
import { declaredRuns, existing, runsOn } from "../chunks.ts";
import { hasEqualParts } from "../local-layout.ts";
import type { Recorder } from "../recorder.ts";
import { extentsOf, tensorOf } from "../tensors.ts";
import { narrowOnEach, permuteView } from "../views.ts";
import { alignAxes } from "./collective-axes.ts";
import type { PostedCollective, Side } from "./collective-sides.ts";

/** A box of elements: a run of indices for every pair of axes. */
export type Box = readonly Run[];

/** The plan of a communication that moves unequal slices; null if a collective does it. */
export function exchangePlan(recorder: Recorder, posted: PostedCollective): ExchangePlan | null {
  const { statement, type } = posted;
  const { splitsInput, splitsOutput } = collectives[type];
  if (!splitsInput && !splitsOutput) return null;
  const { actuals } = recorder;
  const isFixed = !actuals.has(statement.input) && !actuals.has(statement.output);
  const known = isFixed ? recorder.plans.get(statement) : undefined;
  if (known !== undefined) return known;
  const plan = makePlan(recorder, posted);
  if (isFixed) recorder.plans.set(statement, plan);
  return plan;
}

function makePlan(recorder: Recorder, { statement, type, teams }: PostedCollective): ExchangePlan | null {
  const [input, output] = [tensorOf(recorder, statement.input), tensorOf(recorder, statement.output)];
  const outputs = withoutReductions(output.domain.logical);
  const pairs: AxisPair[] = [];
  let isEqual = true;
  const counterparts = alignAxes(input, output, type);
  // Sides of other shapes, in programs written by hand, have slices of equal counts.
  if (counterparts.length !== withoutReductions(input.domain.logical).length) return null;
  for (const [axis, counterpart] of counterparts.entries()) {
    const other = outputs.findIndex(({ id }) => id === counterpart?.id);
    if (other < 0) continue;
    const pair = pairOf(recorder, input, axis, output, other);
    if (pair === null) return null;
    pairs.push(pair.axes);
    isEqual &&= pair.isEven || (pair.isAsLong && agreed(teams.map((team) => allSame(pair.axes, team))));
  }
  return isEqual && type !== "AllToAllV" ? null : { pairs };
}

/** Null if the sides have no common indices. */
export function pairOf(
  recorder: Recorder,
  input: Tensor,
  axis: number,
  output: Tensor,
  other: number,
): { readonly axes: AxisPair; readonly isEven: boolean; readonly isAsLong: boolean } | null {
  const [before, after] = [sizeOf(recorder, input, axis), sizeOf(recorder, output, other)];
  const axes = { input: axis, output: other };
  if (before.size === after.size) {
    const extent = Math.min(before.extent, after.extent);
    // The output has the input's sizes, unless it is bound to a chunk.
    const exists = (rank: number): Runs => {
      const own = existing(recorder, input, axis, rank);
      return after.chunk === null ? own : intersection(own, existing(recorder, output, other, rank));
    };
    const on = {
      input: once((rank) => intersection(declaredRuns(recorder, input, axis, rank), exists(rank))),
      output: once((rank) => intersection(declaredRuns(recorder, output, other, rank), exists(rank))),
    };
    return {
      axes: { ...axes, on, cut: { input: cutOf(before), output: cutOf(after) } },
      isEven: isEven(input, axis, before.size, extent) && isEven(output, other, before.size, extent),
      isAsLong: before.extent === after.extent,
    };
  }
  const [whole, part] = before.size > after.size ? [before, after] : [after, before];
  const { chunk } = part;
  if (chunk === null || at(extentsOf(recorder, tensorOf(recorder, chunk.of)), chunk.axis) !== whole.size) return null;
  const onWhole = once((rank) => runsOn(recorder, whole.tensor, whole.axis, rank));
  const onPart = once(chunk.runs);
  const [ofWhole, ofPart] = [
    cutOf(whole),
    cutOf({ tensor: tensorOf(recorder, chunk.of), axis: chunk.axis, size: whole.size }),
  ];
  const isSplitUp = whole === before;
  const on = isSplitUp ? { input: onWhole, output: onPart } : { input: onPart, output: onWhole };
  const cut = isSplitUp ? { input: ofWhole, output: ofPart } : { input: ofPart, output: ofWhole };
  return { axes: { ...axes, on, cut }, isEven: false, isAsLong: false };
}

/** The runs of each rank, found once: ranks that exchange ask for those of each other. */
function once(runsOf: (rank: number) => Runs): (rank: number) => Runs {
  const known = new Map<number, Runs>();
  return (rank) => {
    const runs = known.get(rank) ?? runsOf(rank);
    known.set(rank, runs);
    return runs;
  };
}

interface AxisSide {
  readonly tensor: Tensor;
  readonly axis: number;
  /** As declared. */
  readonly size: number;
  readonly extent: number;
  readonly chunk: Chunk | null;
}

function sizeOf(recorder: Recorder, tensor: Tensor, axis: number): AxisSide {
  const actual = recorder.actuals.get(tensor.id);
  const size = at(extentsOf(recorder, tensor), axis);
  const chunk = actual?.chunk?.axis === axis ? actual.chunk : null;
  return { tensor, axis, size, extent: actual?.extents[axis] ?? size, chunk };
}

/** Whether all parts of the axis are equal. */
function isEven({ domain }: Tensor, axis: number, size: number, extent: number): boolean {
  return hasEqualParts(domain, at(withoutReductions(domain.logical), axis), size, extent);
}

/** Whether all ranks hold the same indices on both sides. One rank alone may still lack parts that a split counts. */
function allSame({ on }: AxisPair, team: readonly number[]): boolean {
  if (team.length === 1) return false;
  const first = on.input(at(team, 0));
  return team.every((rank) => sameRuns(on.input(rank), first) && sameRuns(on.output(rank), first));
}

/** How a DID type cuts the axis of `size` elements, as declared. */
function cutOf({ tensor: { domain, mesh }, axis, size }: Pick<AxisSide, "tensor" | "axis" | "size">): AxisCut | null {
  const own = at(withoutReductions(domain.logical), axis);
  const cut = sizedCut(domain, own, size);
  const [type, ...others] = cut.parts.flatMap((part) => (isDID(part.type) ? [part.type] : []));
  if (type === undefined || others.length > 0 || mesh === null) return null;
  const position = cut.parts.findIndex((part) => part.type === type);
  const coordinatesOf = (runs: Runs): readonly number[] => {
    const found = new Set<number>();
    for (const { start, stop } of runs) {
      for (let index = start; index < stop;) {
        const { held, end } = indexInPart(cut, position, index);
        found.add(held);
        index = end;
      }
    }
    return [...found].sort((a, b) => a - b);
  };
  return { mesh, type, coordinatesOf };
}

/** All combinations of runs, the last axis varying fastest; none if an axis has none. */
export function boxes(axes: readonly Runs[]): readonly Box[] {
  return axes.reduce<readonly Box[]>((made, runs) => made.flatMap((box) => runs.map((run) => [...box, run])), [[]]);
}

/** One side's view on a rank, with an axis for every pair. Axes without a pair have one element. */
export function pairedView({ pairs }: ExchangePlan, side: Side, view: View): View {
  return permuteView(
    view,
    pairs.map((pair) => pair[side]),
  );
}

/** What `rank` holds of each axis on a side. */
export function heldBy({ pairs }: ExchangePlan, side: Side, rank: number): readonly Runs[] {
  return pairs.map(({ on }) => on[side](rank));
}

/**
 * The elements of each rank's box in `view`, which has one axis per pair and the indices `held` of each on the rank. The
 * boxes have one shape.
 */
export function viewOfBox(view: View, held: readonly (readonly Runs[])[], box: readonly Box[]): View {
  return at(held, 0).reduce((narrowed, _, axis) => {
    const lengths = box.map((runs) => at(runs, axis).stop - at(runs, axis).start);
    const starts = box.map((runs, k) => countBelow(at(at(held, k), axis), at(runs, axis).start));
    return narrowOnEach(narrowed, axis, starts, agreed(lengths));
  }, view);
}
