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
import { agreed } from "../../host/alike/classes.ts";
import { isDID, type Tensor, withoutReductions } from "../../ir/domain.ts";
import { indexInPart, sizedCut } from "../../ir/parts.ts";
import {
  countBelow,
  givenTo,
  type Holding,
  holdingsOf,
  intersection,
  type Run,
  type Runs,
  sameRuns,
} from "../../ir/runs.ts";
import { at, getOrMake } from "../../support/invariant.ts";
import type { AxisCut, ActualAxisPair, Chunk, ExchangePlan } from "../actual-sizes.ts";
import { hasEqualParts } from "../local-layout.ts";
import type { Recorder } from "../recorder.ts";
import { localExtents, tensorOf } from "../tensors.ts";
import { declaredRuns, existing, narrowOnEach, permuteView, runsOn } from "../views.ts";
import { alignAxes, type PostedCollective, type Side } from "./collective-sides.ts";

/** A box of elements: a run of indices for every pair of axes. */
export type RunBox = readonly Run[];

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
  const pairs: ActualAxisPair[] = [];
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
): { readonly axes: ActualAxisPair; readonly isEven: boolean; readonly isAsLong: boolean } | null {
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
  if (chunk === null || at(localExtents(recorder, tensorOf(recorder, chunk.of)), chunk.axis) !== whole.size)
    return null;
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
    return getOrMake(known, rank, () => runsOf(rank));
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
  const size = at(localExtents(recorder, tensor), axis);
  const chunk = actual?.chunk?.axis === axis ? actual.chunk : null;
  return { tensor, axis, size, extent: actual?.extents[axis] ?? size, chunk };
}

/** Whether all parts of the axis are equal. */
function isEven({ domain }: Tensor, axis: number, size: number, extent: number): boolean {
  return hasEqualParts(domain, at(withoutReductions(domain.logical), axis), size, extent);
}

/** Whether all ranks hold the same indices on both sides. One rank alone may still lack parts that a split counts. */
function allSame({ on }: ActualAxisPair, team: readonly number[]): boolean {
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
export function boxes(axes: readonly Runs[]): readonly RunBox[] {
  return axes.reduce<readonly RunBox[]>((made, runs) => made.flatMap((box) => runs.map((run) => [...box, run])), [[]]);
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
export function viewOfBox(view: View, held: readonly (readonly Runs[])[], box: readonly RunBox[]): View {
  return at(held, 0).reduce((narrowed, _, axis) => {
    const lengths = box.map((runs) => at(runs, axis).stop - at(runs, axis).start);
    const starts = box.map((runs, k) => countBelow(at(at(held, k), axis), at(runs, axis).start));
    return narrowOnEach(narrowed, axis, starts, agreed(lengths));
  }, view);
}

// What a rank sends and receives by an exchange plan. Where one DID type cuts an axis among the ranks, the holder of an
// index follows from the splits of the axis, so a rank looks only at ranks that it exchanges elements with.

export interface RankPieces {
  /** What other ranks get from this one, in team order. Those that get the same share one list of boxes. */
  readonly sends: readonly { readonly to: number; readonly boxes: readonly RunBox[] }[];
  /** What this rank gets, in team order, also from itself. A reduction lists all sources, unless it has no elements. */
  readonly receipts: readonly { readonly from: number; readonly boxes: readonly RunBox[] }[];
}

/** The ranks on the sides of a communication, in team order. */
interface Ends {
  readonly sources: readonly number[];
  readonly readers: readonly number[];
  /** Whether elements of all sources are combined. Otherwise one source gives each element. */
  readonly reduces: boolean;
}

/** Boxes by their source, for the indices that a rank wants. Ranks that want the same share them. */
export interface WantedBoxes {
  latest: { readonly wanted: readonly Runs[]; readonly boxes: Map<number, readonly RunBox[]> } | null;
}

function boxesBySource(known: WantedBoxes, wanted: readonly Runs[]): Map<number, readonly RunBox[]> {
  const { latest } = known;
  if (latest?.wanted.every((runs, i) => sameRuns(runs, at(wanted, i))) === true) return latest.boxes;
  const boxes = new Map<number, readonly RunBox[]>();
  known.latest = { wanted, boxes };
  return boxes;
}

export function rankPieces(
  { pairs }: ExchangePlan,
  rank: number,
  { sources, readers, reduces }: Ends,
  known: WantedBoxes,
): RankPieces {
  const cut = reduces ? -1 : pairs.findIndex((pair) => isCutAmong(pair, "input", sources));
  const isDirect = reduces || cut >= 0;
  const holdings = isDirect ? [] : holdingsOf(sources, (source) => pairs.map(({ on }) => on.input(source)));
  const sendsOf = (): RankPieces["sends"] => {
    const own = pairs.map(({ on }) => on.input(rank));
    const sentTo = isDirect
      ? sharedBoxes(pairs, own)
      : (to: number) => piecesInTurn(pairs, to, readers, holdings).get(rank) ?? [];
    return possibleReaders(pairs, own, readers).flatMap((to) => {
      const sent = to === rank ? [] : sentTo(to);
      return sent.length === 0 ? [] : [{ to, boxes: sent }];
    });
  };
  const sends = sources.includes(rank) ? sendsOf() : [];
  if (!readers.includes(rank)) return { sends, receipts: [] };
  const wanted = pairs.map(({ on }) => on.output(rank));
  if (wanted.some((runs) => runs.length === 0)) return { sends, receipts: [] };
  if (cut < 0 && !reduces) {
    const pieces = piecesInTurn(pairs, rank, readers, holdings);
    return { sends, receipts: sources.map((from) => ({ from, boxes: pieces.get(from) ?? [] })) };
  }
  const givers = cut < 0 ? sources : ranksWith(at(pairs, cut), "input", sources, at(wanted, cut));
  const bySource = boxesBySource(known, wanted);
  const receipts = givers.map((from) => {
    const given = getOrMake(bySource, from, () =>
      boxes(pairs.map(({ on }, i) => intersection(at(wanted, i), on.input(from)))),
    );
    return { from, boxes: given };
  });
  return { sends, receipts };
}

/** Whether the ranks are the devices along the one DID type that cuts the axis: no two share an index. */
function isCutAmong({ cut }: ActualAxisPair, side: Side, ranks: readonly number[]): boolean {
  const [first] = ranks;
  const own = cut[side];
  if (own === null || first === undefined || !own.mesh.has(first)) return false;
  const devices = own.mesh.slice(first, own.type);
  return devices.length === ranks.length && devices.every((device, i) => device === ranks[i]);
}

/** Those of `ranks`, which the axis is cut among, that may hold some of the indices. */
function ranksWith({ cut }: ActualAxisPair, side: Side, ranks: readonly number[], runs: Runs): readonly number[] {
  return (cut[side]?.coordinatesOf(runs) ?? []).flatMap((coordinate) => ranks[coordinate] ?? []);
}

/** The readers that may want some of the indices `own` of a source. */
function possibleReaders(
  pairs: readonly ActualAxisPair[],
  own: readonly Runs[],
  readers: readonly number[],
): readonly number[] {
  if (own.some((runs) => runs.length === 0)) return [];
  const cut = pairs.findIndex((pair) => isCutAmong(pair, "output", readers));
  return cut < 0 ? readers : ranksWith(at(pairs, cut), "output", readers, at(own, cut));
}

/** The boxes that a reader wants of a source that has `own`. Often it wants what the reader before it did. */
function sharedBoxes(pairs: readonly ActualAxisPair[], own: readonly Runs[]): (reader: number) => readonly RunBox[] {
  let last: { readonly wanted: readonly Runs[]; readonly made: readonly RunBox[] } | null = null;
  return (reader) => {
    const wanted = pairs.map(({ on }) => on.output(reader));
    if (last?.wanted.every((runs, i) => sameRuns(runs, at(wanted, i))) !== true) {
      last = { wanted, made: boxes(wanted.map((runs, i) => intersection(runs, at(own, i)))) };
    }
    return last.made;
  };
}

/** What `reader` gets from each source, where several may have the same elements. */
function piecesInTurn(
  pairs: readonly ActualAxisPair[],
  reader: number,
  readers: readonly number[],
  holdings: readonly Holding<number>[],
): ReadonlyMap<number, readonly RunBox[]> {
  const wanted = pairs.map(({ on }) => on.output(reader));
  const given = givenTo(reader, readers.indexOf(reader), wanted, holdings);
  return new Map([...given].map(([source, regions]) => [source, regions.flatMap(boxes)]));
}
