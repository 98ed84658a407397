/** The tracks and slices of one run, from when each command of the Program started and ended. */
import type { Program } from "../../commands/program.ts";
import { type Accesses, accesses, type Region } from "../../commands/region.ts";
import type { Waits } from "../../explain/dependences.ts";
import { at, getOrMake } from "../../support/invariant.ts";
import { inTrackOrder } from "../../trace/timeline.ts";
import { sharedBytes, spanOf } from "../../verify/check/shared-bytes.ts";
import {
  type OrderReason,
  orderReasons,
  type SliceColumns,
  type TimelineRank,
  type Track,
} from "../data/timeline-data.ts";
import type { Works } from "./works.ts";

/** When the commands of a run started and ended, by their number. */
export interface Placed {
  readonly start: Float64Array;
  readonly end: Float64Array;
  /** When what the command waits for was there. */
  readonly ready: Float64Array;
}

export interface RunSlices {
  readonly tracks: readonly Track[];
  readonly slices: SliceColumns;
  /** The slice of a command, by its number; -1 for one that has none. */
  readonly sliceOf: Int32Array;
}

interface Drawing {
  readonly works: Works;
  /** Whether a command has a slice, besides that of its wait. */
  readonly isDrawn: (number: number) => boolean;
  readonly edgesOf: EdgesOf;
}

/** Shorter waits are rounding, or too short to see: a nanosecond, in milliseconds. */
const shortest = 1e-6;

/** The ranks with those of their streams that have commands. */
export function timelineRanks({ ranks }: Program): readonly TimelineRank[] {
  return ranks.map(({ rank, streams, commands }) => {
    const used = new Set<number>(commands.map(({ stream }) => stream));
    return {
      rank,
      streams: inTrackOrder(streams)
        .filter(({ id }) => used.has(id))
        .map(({ id, name }) => ({ id, name })),
    };
  });
}

/** Drawn commands, and the time in which a wait or a transfer blocks its stream. */
export function slicesOfRun(
  program: Program,
  waits: Waits,
  { start, end, ready }: Placed,
  { works, isDrawn, edgesOf }: Drawing,
): RunSlices {
  const { first, previous } = waits;
  const [starts, durations]: readonly [number[], number[]] = [[], []];
  const [commands, kinds, iterations]: readonly [number[], number[], number[]] = [[], [], []];
  /** By slice: its command's number. */
  const numbers: number[] = [];
  const sliceOf = new Int32Array(at(first, program.ranks.length)).fill(-1);
  const tracks: Track[] = [];
  for (const { rank, streams } of timelineRanks(program)) {
    const list = at(program.ranks, rank);
    const byStream = list.streams.map((): number[] => []);
    for (const [index, { stream }] of list.commands.entries()) at(byStream, stream).push(index);
    for (const { id } of streams) {
      const begin = numbers.length;
      for (const index of at(byStream, id)) {
        const number = at(first, rank) + index;
        const add = (from: number, to: number, waits: boolean): void => {
          starts.push(from);
          durations.push(to - from);
          commands.push(index);
          kinds.push(works.workOf(rank, index, waits));
          iterations.push(works.iterationOf(rank, index));
          numbers.push(number);
        };
        const { kind } = at(list.commands, index);
        const drawn = isDrawn(number);
        if (kind === "transfer" || kind === "waitEvent" || kind === "waitSignal") {
          const before = at(previous, number);
          const reached = before < 0 ? 0 : at(end, before);
          const until = drawn ? Math.min(at(ready, number), at(start, number)) : at(end, number);
          if (until > reached + shortest) add(reached, until, true);
        }
        if (!drawn) continue;
        sliceOf[number] = numbers.length;
        add(at(start, number), at(end, number), false);
      }
      if (numbers.length > begin) tracks.push({ rank, stream: id, first: begin, count: numbers.length - begin });
    }
  }
  const slices = {
    start: Float64Array.from(starts),
    duration: Float64Array.from(durations),
    command: Int32Array.from(commands),
    work: Int32Array.from(kinds),
    iteration: Int32Array.from(iterations),
    ...edgeColumns(numbers, sliceOf, edgesOf, createOrderReasons(program, waits)),
  };
  return { tracks, slices, sliceOf };
}

function edgeColumns(
  numbers: readonly number[],
  sliceOf: Int32Array,
  edgesOf: EdgesOf,
  reasonOf: ReasonOf,
): Pick<SliceColumns, "edgeStart" | "edges" | "reasons"> {
  const edgeStart = new Int32Array(numbers.length + 1);
  const [edges, reasons]: readonly [number[], number[]] = [[], []];
  for (const [slice, number] of numbers.entries()) {
    for (const other of edgesOf(number)) {
      const from = at(sliceOf, other);
      if (from < 0) continue;
      edges.push(from);
      reasons.push(reasonOf(other, number));
    }
    edgeStart[slice + 1] = edges.length;
  }
  return { edgeStart, edges: Int32Array.from(edges), reasons: Int32Array.from(reasons) };
}

// Why one command of a run stands before another that waited for it: what they have in common, the most telling first.
// A wait is for a whole stream up to an event or signal, so the commands before it on that stream are looked at, too.

/** An index into `orderReasons`, for the numbers of two commands. */
type ReasonOf = (earlier: number, later: number) => number;

/** Commands before the earlier one, on its stream, that are looked at. */
const farthest = 32;

function createOrderReasons(program: Program, { rankOf, indexOf, previous, peers }: Waits): ReasonOf {
  const known = new Map<number, Accesses>();
  const accessesOf = (number: number): Accesses => {
    return getOrMake(known, number, () => accesses(program, rankOf(number), indexOf(number)));
  };
  const commandOf = (number: number): Program["ranks"][number]["commands"][number] =>
    at(at(program.ranks, rankOf(number)).commands, indexOf(number));
  const shareMemory = (some: readonly Region[], others: readonly Region[]): boolean =>
    some.some((region) => others.some((other) => sharesBytes(program, region, other)));

  const needed = (earlier: number, later: number): OrderReason | null => {
    const [before, after] = [accessesOf(earlier), accessesOf(later)];
    if (shareMemory(before.writes, after.reads)) return "data";
    return shareMemory(before.reads, after.writes) || shareMemory(before.writes, after.writes) ? "memory reuse" : null;
  };

  const reasonOf = (earlier: number, later: number): OrderReason => {
    const [before, after] = [commandOf(earlier), commandOf(later)];
    if (peers(later).includes(earlier)) return "peer";
    let number = earlier;
    for (let i = 0; i < farthest && number >= 0; i++, number = at(previous, number)) {
      const own = needed(number, later);
      if (own !== null) return own;
    }
    if (before.kind === "transfer" && after.kind === "transfer" && before.communicator === after.communicator)
      return "communicator";
    return rankOf(earlier) === rankOf(later) && before.stream === after.stream ? "stream" : "event or signal";
  };
  return (earlier, later) => orderReasons.indexOf(reasonOf(earlier, later));
}

/** Exact in one buffer. Of two buffers, whether their places overlap. */
function sharesBytes({ buffers }: Program, a: Region, b: Region): boolean {
  if (a.buffer === b.buffer) return sharedBytes({ ...a, start: a.offset }, { ...b, start: b.offset }) > 0;
  const [one, other] = [at(buffers, a.buffer), at(buffers, b.buffer)];
  if (one.rank !== other.rank || one.arena !== other.arena) return false;
  const [start, otherStart] = [one.offset + a.offset, other.offset + b.offset];
  return start < otherStart + spanOf(b) && otherStart < start + spanOf(a);
}

// The arrows of a timeline: which drawn command of another stream each drawn command waited for.

/** The commands, by number, that a command waited for besides the one before it on its stream. */
type EdgesOf = (number: number) => readonly number[];

/** A command that is not drawn, such as a wait without a slice, hands what it waited for on to the next one. */
const most = 8;

const none: readonly number[] = [];

/**
 * `isDrawn`: whether a command has a slice of its own. `arrived`: when a command's stream reached it; of the peers of a
 * transfer, the last one to arrive is the one that was waited for.
 */
export function createEdges(
  { order, previous, source, peers }: Waits & { readonly order: Iterable<number> },
  isDrawn: (number: number) => boolean,
  arrived: (number: number) => number,
): EdgesOf {
  const found: (readonly number[])[] = [];
  /** The last drawn command up to each one, on its stream; -1 without one. */
  const drawn = new Int32Array(previous.length).fill(-1);
  const union = (a: readonly number[], b: readonly number[]): readonly number[] => {
    if (a.length === 0 || b.length === 0) return a.length === 0 ? b : a;
    return [...new Set([...a, ...b])].slice(-most);
  };
  const throughTo = (number: number): readonly number[] => {
    if (number < 0) return none;
    if (isDrawn(number)) return [number];
    const last = at(drawn, number);
    return last < 0 ? (found[number] ?? none) : union([last], found[number] ?? none);
  };
  for (const number of order) {
    const before = at(previous, number);
    const carried = before < 0 || isDrawn(before) ? none : (found[before] ?? none);
    drawn[number] = isDrawn(number) ? number : before < 0 ? -1 : at(drawn, before);
    found[number] = union(union(carried, throughTo(at(source, number))), lastPeer(number));
  }
  return (number) => found[number] ?? none;

  function lastPeer(number: number): readonly number[] {
    const needed = peers(number);
    if (needed.length < 2) return none;
    const last = needed.reduce((latest, peer) => (arrived(peer) > arrived(latest) ? peer : latest));
    return last === number ? none : [last];
  }
}
