/** A run of a timeline in steps: the order of commands, without times. */
import type { Program } from "../../commands/program.ts";
import { never, type Waits, waitsOf } from "../../explain/dependences.ts";
import type { InterleavingStep } from "../../machine/interleaving.ts";
import { at } from "../../support/invariant.ts";
import type { OrderEdge } from "../../verify/finding.ts";
import type { TimelineRun } from "../data/timeline-data.ts";
import { memoryCurves } from "./memory.ts";
import { createEdges, type Placed, slicesOfRun } from "./run.ts";
import type { Works } from "./works.ts";

export interface StepRun {
  readonly name: string;
  readonly program: Program;
  /** The first steps; the others follow as early as they can. */
  readonly interleaving: readonly InterleavingStep[];
  /** Orders that the program lacks. */
  readonly missing: readonly OrderEdge[];
}

export function stepRun({ name, program, interleaving, missing }: StepRun, works: Works): TimelineRun {
  const waits = waitsOf(program);
  const placed = placeSteps(program, waits, interleaving);
  const { start, end, order, steps } = placed;
  const runs = new Set(order);
  const arrived = (number: number): number => at(start, number);
  const isDrawn = (number: number): boolean => runs.has(number);
  const edgesOf = createEdges({ ...waits, order }, isDrawn, arrived);
  const { tracks, slices, sliceOf } = slicesOfRun(program, waits, placed, { works, isDrawn, edgesOf });
  const sliceAt = (place: OrderEdge["from"]): number =>
    place.command === null ? -1 : (sliceOf[at(waits.first, place.rank) + place.command] ?? -1);
  return {
    name,
    end: steps,
    tracks,
    slices,
    critical: new Int32Array(),
    idle: [],
    missing: missing.flatMap(({ from, to }): readonly (readonly [number, number])[] => {
      const pair = [sliceAt(from), sliceAt(to)] as const;
      return pair.includes(-1) ? [] : [pair];
    }),
    memory: memoryCurves(program, (rank, index) => {
      const number = at(waits.first, rank) + index;
      return runs.has(number) ? at(end, number) : null;
    }),
  };
}

// Places commands on an axis of steps, where only their order is known: each command takes one step, as early as what it
// waits for allows, or where an interleaving runs it. Commands that never run, as in a deadlock, have no place.

interface PlacedSteps extends Placed {
  /** The commands that run, each after those that it waits for. */
  readonly order: readonly number[];
  readonly end: Float64Array;
  readonly steps: number;
}

interface Stream {
  readonly commands: readonly number[];
  next: number;
  /** Whether its transfer has arrived in an interleaving; it completes with a later step. */
  arrived: number | null;
}

/** `interleaving`: the first steps; those that remain follow as early as they can. */
function placeSteps(program: Program, waits: Waits, interleaving: readonly InterleavingStep[]): PlacedSteps {
  const { first, source, peers, previous } = waits;
  const count = at(first, program.ranks.length);
  const [start, end, ready] = [new Float64Array(count), new Float64Array(count), new Float64Array(count)];
  const done = new Uint8Array(count);
  const order: number[] = [];
  const streams = program.ranks.map(({ rank, commands, streams: own }) => {
    const lists = own.map((): number[] => []);
    for (const [index, { stream }] of commands.entries()) at(lists, stream).push(at(first, rank) + index);
    return lists.map((list): Stream => ({ commands: list, next: 0, arrived: null }));
  });
  const finish = (stream: Stream, number: number, from: number, to: number): void => {
    [start[number], end[number], ready[number]] = [from, to, from];
    done[number] = 1;
    order.push(number);
    stream.next++;
    stream.arrived = null;
  };
  let step = 0;
  for (const each of interleaving) {
    step++;
    if ("caller" in each) continue;
    const stream = streams[each.rank]?.[each.stream];
    const number = stream?.commands[stream.next];
    if (stream === undefined || number === undefined) continue;
    if (peers(number).length > 0 && stream.arrived === null) stream.arrived = step - 1;
    else finish(stream, number, step - 1, step);
  }

  /** Streams whose next command waits for a command. */
  const waiting = new Map<number, Stream[]>();
  const queue = streams.flat();
  /** What a command needs to have run; its peers only need to have arrived. */
  const needs = (number: number): readonly number[] =>
    [at(source, number), ...peers(number).map((peer) => at(previous, peer))].filter((other) => other !== -1);
  for (let stream = queue.pop(); stream !== undefined; stream = queue.pop()) {
    for (let number = stream.commands[stream.next]; number !== undefined; number = stream.commands[stream.next]) {
      const needed = needs(number);
      const missing = needed.find((other) => other === never || done[other] !== 1);
      if (missing !== undefined) {
        if (missing !== never) waiting.set(missing, [...(waiting.get(missing) ?? []), stream]);
        break;
      }
      const before = at(previous, number);
      const from = [before, ...needed].reduce(
        (latest, other) => (other < 0 ? latest : Math.max(latest, at(end, other))),
        stream.arrived ?? step,
      );
      finish(stream, number, from, from + 1);
      queue.push(...(waiting.get(number) ?? []));
      waiting.delete(number);
    }
  }
  // In the order of their steps: an interleaving's transfers complete late.
  order.sort((a, b) => at(end, a) - at(end, b));
  return { start, end, ready, order, steps: order.reduce((last, number) => Math.max(last, at(end, number)), 0) };
}
