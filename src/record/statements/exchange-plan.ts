/**
 * Which elements move where in a communication whose slices are not equal: uneven or empty shares, or chunks whose
 * boundaries lie elsewhere than those of the shares. Each rank that writes gets the indices that its output holds from
 * the ranks whose input has them: from itself if it can, else from the first in team order.
 *
 *   Allgather of i{7} over 3 ranks      shares 0 1 2 | 3 4 5 | 6, every rank receives the others'
 *   Allgather of chunk 1 of 4           indices 2 3: index 2 from rank 0, index 3 from rank 1
 *   ReduceScatter of i{7} over 3 ranks  rank 2 receives index 6 of all ranks' inputs and adds them in team order
 */
import { collectives } from "../../commands/collectives.ts";
import { narrowView, type View } from "../../commands/view.ts";
import { countBelow, difference, intersection, type Run, type Runs } from "../../ir/axis-runs.ts";
import { sizedParts } from "../../ir/axis-shards.ts";
import { type Tensor, withoutReductions } from "../../ir/domain.ts";
import { at } from "../../support/invariant.ts";
import type { AxisPair, Chunk, ExchangePlan } from "../actual-sizes.ts";
import { chunkRuns, declaredRuns } from "../chunks.ts";
import type { Recorder } from "../recorder.ts";
import { extentsOf, tensorOf } from "../tensors.ts";
import { permuteView } from "../views.ts";
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

function makePlan(recorder: Recorder, { statement, type }: PostedCollective): ExchangePlan | null {
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
    isEqual &&= pair.isEven || (pair.isAsLong && allSame(pair.axes, statement.team));
  }
  return isEqual ? null : { pairs };
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
    const on = {
      input: (rank: number) => declaredRuns(recorder, input, axis, extent, rank),
      output: (rank: number) => declaredRuns(recorder, output, other, extent, rank),
    };
    return {
      axes: { ...axes, on },
      isEven: isEven(input, axis, before.size, extent) && isEven(output, other, before.size, extent),
      isAsLong: before.extent === after.extent,
    };
  }
  const [whole, part] = before.size > after.size ? [before, after] : [after, before];
  const { chunk } = part;
  if (chunk === null || at(extentsOf(recorder, tensorOf(recorder, chunk.of)), chunk.axis) !== whole.size) return null;
  const onWhole = (rank: number): Runs => declaredRuns(recorder, whole.tensor, whole.axis, whole.extent, rank);
  const onPart = (rank: number): Runs => chunkRuns(recorder, chunk, rank);
  const on = whole === before ? { input: onWhole, output: onPart } : { input: onPart, output: onWhole };
  return { axes: { ...axes, on }, isEven: false, isAsLong: false };
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
  const parts = sizedParts(domain, at(withoutReductions(domain.logical), axis), size);
  return parts.length === 1 || parts.reduce((product, part) => product * part.extent, 1) === extent;
}

/** Whether all ranks hold the same indices on both sides. One rank alone may still lack parts that a split counts. */
function allSame({ on }: AxisPair, team: readonly number[]): boolean {
  if (team.length === 1) return false;
  const texts = new Set(team.flatMap((rank) => [on.input(rank), on.output(rank)]).map((runs) => JSON.stringify(runs)));
  return texts.size <= 1;
}

/** What `reader` gets from each of `sources`, both as ranks. For a reduction, all sources give all that it holds. */
export function piecesFor(
  { pairs }: ExchangePlan,
  reader: number,
  sources: readonly number[],
  reduces: boolean,
): ReadonlyMap<number, readonly Box[]> {
  const rests = pairs.map(({ on }) => on.output(reader));
  const moving = pairs.findIndex(({ on }) =>
    sources.some((source) => !sameRuns(on.input(source), on.input(at(sources, 0)))),
  );
  const pieces = new Map<number, readonly Box[]>();
  const ordered = sources.includes(reader) ? [reader, ...sources.filter((source) => source !== reader)] : sources;
  for (const source of ordered) {
    const common = pairs.map(({ on }, i) => intersection(at(rests, i), on.input(source)));
    pieces.set(source, boxes(common));
    if (reduces) continue;
    // Sources hold the same indices of all axes but one.
    const taken = moving < 0 ? 0 : moving;
    if (taken < rests.length) rests[taken] = difference(at(rests, taken), at(common, taken));
  }
  return pieces;
}

function sameRuns(a: Runs, b: Runs): boolean {
  return a.length === b.length && a.every(({ start, stop }, i) => b[i]?.start === start && b[i].stop === stop);
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

/** The elements of the box in `view`, which has one axis per pair and holds what `rank` holds on that side. */
export function viewOfBox({ pairs }: ExchangePlan, side: Side, rank: number, view: View, box: Box): View {
  return pairs.reduce((narrowed, { on }, axis) => {
    const { start, stop } = at(box, axis);
    return narrowView(narrowed, axis, countBelow(on[side](rank), start), stop - start);
  }, view);
}
