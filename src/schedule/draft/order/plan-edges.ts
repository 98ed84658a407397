/**
 * Plans the events of one rank's commands, given their streams and dependences. Every stream has a clock of how far it
 * knows each stream to have progressed. A dependence that the clock covers needs no event. The others are handled
 * latest first, because the latest event of a stream covers all earlier ones.
 */
import { at, invariant } from "../../../support/invariant.ts";
import type { DraftDependences } from "./known-dependences.ts";

export interface EdgeStep {
  /** The index in the dependences: of a command, or of a barrier, whose events come before and after it as a whole. */
  readonly group: number;
  readonly stream: number;
  /** Whether it is an alloc or a free, which do nothing at run time. */
  readonly isMark: boolean;
}

export interface EdgePlan {
  /** The step before which stream 0 records the start of the run. The other streams wait for that event. */
  readonly start: number;
  /** Steps after which an event is recorded on their stream; -1 is the start of the run. */
  readonly recorded: ReadonlySet<number>;
  /** By step: the steps whose events its stream waits for first. */
  readonly waits: readonly (readonly number[])[];
  /** The steps that stream 0 waits for at the end, before step `end`. Only frees follow. */
  readonly joins: readonly number[];
  readonly end: number;
}

export function planEdges(
  steps: readonly EdgeStep[],
  dependences: Pick<DraftDependences, "before" | "sequence" | "nodes">,
  streamCount: number,
): EdgePlan {
  const stepAt = new Int32Array(steps.length);
  for (const [step, { group }] of steps.entries()) stepAt[group] = step;
  const known = Array.from({ length: streamCount }, () => new Int32Array(streamCount));
  /** By step, from the start of the run at -1: what its stream knew after it. */
  const clocks = new Int32Array((steps.length + 1) * streamCount);
  const isFinished = new Uint8Array(steps.length + 1);
  const recorded = new Set<number>();
  // Marks before any work come before the start, so one event covers both.
  const firstWork = steps.findIndex(({ stream, isMark }) => stream !== 0 || !isMark);
  const start = firstWork === -1 ? steps.length : firstWork;
  const candidates = candidatesOf(steps, stepAt, dependences, streamCount, start);
  const streamOf = (step: number): number => (step === -1 ? 0 : at(steps, step).stream);
  const finish = (step: number): void => {
    const stream = streamOf(step);
    const clock = at(known, stream);
    clock[stream] = at(clock, stream) + 1;
    clocks.set(clock, (step + 1) * streamCount);
    isFinished[step + 1] = 1;
  };
  const isKnown = (stream: number, step: number): boolean => {
    const other = streamOf(step);
    if (other === stream) return true;
    invariant(isFinished[step + 1] === 1, "what a command waits for is issued before it", { step });
    return at(at(known, stream), other) >= at(clocks, (step + 1) * streamCount + other);
  };
  const wait = (stream: number, wanted: readonly number[]): readonly number[] => {
    const waits: number[] = [];
    for (const step of wanted.toSorted((a, b) => b - a)) {
      if (isKnown(stream, step)) continue;
      waits.push(step);
      recorded.add(step);
      const clock = at(known, stream);
      const after = (step + 1) * streamCount;
      for (let other = 0; other < streamCount; other++) {
        const count = at(clocks, after + other);
        if (count > at(clock, other)) clock[other] = count;
      }
    }
    return waits;
  };
  const lastWork = steps.findLastIndex(({ stream, isMark }) => stream !== 0 || !isMark);
  const end = Math.max(start, lastWork + 1);
  const lasts = new Map(steps.slice(0, end).map(({ stream }, step) => [stream, step]));
  let joins: readonly number[] = [];
  const waits = steps.map(({ group, stream }, step) => {
    if (step === start) finish(-1);
    if (step === end) joins = wait(0, [...lasts.values()]);
    if (step < start) {
      finish(step);
      return [];
    }
    const own = wait(stream, [...candidates(group), -1]);
    finish(step);
    return own;
  });
  if (end === steps.length) joins = wait(0, [...lasts.values()]);
  return { start, recorded, waits, joins, end };
}

/** The steps from `least` that a group comes after. Of a join's steps, the last on each stream covers the others. */
function candidatesOf(
  steps: readonly EdgeStep[],
  stepAt: Int32Array,
  { before, sequence, nodes }: Pick<DraftDependences, "before" | "sequence" | "nodes">,
  streamCount: number,
  least: number,
): (group: number) => readonly number[] {
  /** By join and stream: the last step, or -1. */
  const lasts = new Map<number, Int32Array>();
  for (const vertex of sequence) {
    if (vertex < nodes) continue;
    const last = new Int32Array(streamCount).fill(-1);
    for (const other of at(before, vertex)) {
      const ofBase = lasts.get(other);
      if (ofBase === undefined) {
        const step = at(stepAt, other);
        const { stream } = at(steps, step);
        if (step > at(last, stream)) last[stream] = step;
        continue;
      }
      for (let stream = 0; stream < streamCount; stream++) {
        const step = at(ofBase, stream);
        if (step > at(last, stream)) last[stream] = step;
      }
    }
    lasts.set(vertex, last);
  }
  return (group) => {
    const found: number[] = [];
    for (const vertex of at(before, group)) {
      if (vertex < nodes) {
        const step = at(stepAt, vertex);
        if (step >= least) found.push(step);
      } else {
        for (const step of lasts.get(vertex) ?? []) if (step >= least) found.push(step);
      }
    }
    return found;
  };
}
