/**
 * What a rank sends and receives by an exchange plan. Where one DID type cuts an axis among the ranks, the holder of an
 * index follows from the splits of the axis, so a rank looks only at ranks that it exchanges elements with.
 */
import { intersection, type Runs, sameRuns } from "../../ir/runs.ts";
import { givenTo, type Holding, holdingsOf } from "../../ir/regions.ts";
import { at } from "../../support/invariant.ts";
import type { AxisPair, ExchangePlan } from "../actual-sizes.ts";
import type { Side } from "./collective-sides.ts";
import { type Box, boxes } from "./exchange-plan.ts";

export interface RankPieces {
  /** What other ranks get from this one, in team order. Those that get the same share one list of boxes. */
  readonly sends: readonly { readonly to: number; readonly boxes: readonly Box[] }[];
  /** What this rank gets, in team order, also from itself. A reduction lists all sources, unless it has no elements. */
  readonly receipts: readonly { readonly from: number; readonly boxes: readonly Box[] }[];
}

/** The ranks on the sides of a communication, in team order. */
export interface Ends {
  readonly sources: readonly number[];
  readonly readers: readonly number[];
  /** Whether elements of all sources are combined. Otherwise one source gives each element. */
  readonly reduces: boolean;
}

/** Boxes by their source, for the indices that a rank wants. Ranks that want the same share them. */
export interface WantedBoxes {
  latest: { readonly wanted: readonly Runs[]; readonly boxes: Map<number, readonly Box[]> } | null;
}

function boxesBySource(known: WantedBoxes, wanted: readonly Runs[]): Map<number, readonly Box[]> {
  const { latest } = known;
  if (latest?.wanted.every((runs, i) => sameRuns(runs, at(wanted, i))) === true) return latest.boxes;
  const boxes = new Map<number, readonly Box[]>();
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
    const given = bySource.get(from) ?? boxes(pairs.map(({ on }, i) => intersection(at(wanted, i), on.input(from))));
    bySource.set(from, given);
    return { from, boxes: given };
  });
  return { sends, receipts };
}

/** Whether the ranks are the devices along the one DID type that cuts the axis: no two share an index. */
function isCutAmong({ cut }: AxisPair, side: Side, ranks: readonly number[]): boolean {
  const [first] = ranks;
  const own = cut[side];
  if (own === null || first === undefined || !own.mesh.has(first)) return false;
  const devices = own.mesh.slice(first, own.type);
  return devices.length === ranks.length && devices.every((device, i) => device === ranks[i]);
}

/** Those of `ranks`, which the axis is cut among, that may hold some of the indices. */
function ranksWith({ cut }: AxisPair, side: Side, ranks: readonly number[], runs: Runs): readonly number[] {
  return (cut[side]?.coordinatesOf(runs) ?? []).flatMap((coordinate) => ranks[coordinate] ?? []);
}

/** The readers that may want some of the indices `own` of a source. */
function possibleReaders(
  pairs: readonly AxisPair[],
  own: readonly Runs[],
  readers: readonly number[],
): readonly number[] {
  if (own.some((runs) => runs.length === 0)) return [];
  const cut = pairs.findIndex((pair) => isCutAmong(pair, "output", readers));
  return cut < 0 ? readers : ranksWith(at(pairs, cut), "output", readers, at(own, cut));
}

/** The boxes that a reader wants of a source that has `own`. Often it wants what the reader before it did. */
function sharedBoxes(pairs: readonly AxisPair[], own: readonly Runs[]): (reader: number) => readonly Box[] {
  let last: { readonly wanted: readonly Runs[]; readonly made: readonly Box[] } | null = null;
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
  pairs: readonly AxisPair[],
  reader: number,
  readers: readonly number[],
  holdings: readonly Holding<number>[],
): ReadonlyMap<number, readonly Box[]> {
  const wanted = pairs.map(({ on }) => on.output(reader));
  const given = givenTo(reader, readers.indexOf(reader), wanted, holdings);
  return new Map([...given].map(([source, regions]) => [source, regions.flatMap(boxes)]));
}
