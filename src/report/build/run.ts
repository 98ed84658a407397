/** The tracks and slices of one run, from when each command of the Program started and ended. */
import type { Program } from "../../commands/program.ts";
import type { Waits } from "../../explain/dependences.ts";
import { at } from "../../support/invariant.ts";
import { inTrackOrder } from "../../trace/track-order.ts";
import type { Slices, TimelineRank, Track } from "../data/timeline-data.ts";
import type { EdgesOf } from "./edges.ts";
import { createOrderReasons, type ReasonOf } from "./order-reasons.ts";
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
  readonly slices: Slices;
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
): Pick<Slices, "edgeStart" | "edges" | "reasons"> {
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
