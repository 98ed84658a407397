/**
 * Writes a Draft as a list: commands in issue order, each on its stream, with as few events as their dependences need.
 * Dependences that streams and earlier events already imply need none. All streams begin after the caller's and end
 * before it. No event is inside a barrier.
 */
import type { Command, CommandStreamId, EventId, TransferId } from "../../commands/command.ts";
import { createListWriter } from "../../commands/list-writer.ts";
import type { RankProgram } from "../../commands/program.ts";
import { makeId, at, invariant } from "../../support/invariant.ts";
import type { Draft, DraftNode } from "./draft.ts";
import type { DraftMemory } from "./memory/memory.ts";
import type { KnownDependences, DraftDependences } from "./order/known-dependences.ts";
import { groupDependences, nodeGroups, issueOrder } from "./order/order-nodes.ts";

export interface WrittenList {
  readonly list: Pick<RankProgram, "streams" | "eventCount" | "commands" | "origins" | "transferOf">;
  /** By position: the node of the command, or for an event one of those that it is beside. */
  readonly nodes: readonly DraftNode[];
  /** By position in the list that was read: the new position, or null if the command is gone. */
  readonly positions: ReadonlyMap<number, number>;
}

export function writeDraft(draft: Draft, memory: DraftMemory, known: KnownDependences): WrittenList {
  const { nodes, streams } = usedStreams(draft);
  const groups = nodeGroups({ ...draft, nodes }, memory);
  const dependences = groupDependences(groups, known.of(draft.nodes));
  const grouped = groups.map((positions) => positions.map((position) => at(nodes, position)));
  const order = issueOrder(grouped, dependences);
  const plan = planEdges(
    order.map((group) => {
      const { command } = at(at(grouped, group), 0);
      return { group, stream: command.stream, isMark: command.kind === "alloc" || command.kind === "free" };
    }),
    dependences,
    streams.length,
  );
  const { list, add: addTo } = createListWriter();
  const written: DraftNode[] = [];
  const positions = new Map<number, number>();
  const events = new Map<number, EventId>();
  const add = (command: Command, node: DraftNode, transfer: TransferId | null): void => {
    addTo(command, node.origin, transfer);
    written.push(node);
  };
  const addRecord = (step: number, stream: CommandStreamId, node: DraftNode): void => {
    if (!plan.recorded.has(step)) return;
    const event = makeId<EventId>(events.size);
    events.set(step, event);
    add({ kind: "recordEvent", stream, event }, node, null);
  };
  const addWaits = (steps: readonly number[], stream: CommandStreamId, node: DraftNode): void => {
    for (const step of steps) {
      const event = events.get(step);
      invariant(event !== undefined, "an event is recorded before a stream waits for it", { step });
      add({ kind: "waitEvent", stream, event }, node, null);
    }
  };
  const caller = makeId<CommandStreamId>(0);
  for (const [step, group] of order.entries()) {
    const own = at(grouped, group);
    const first = at(own, 0);
    const { stream } = first.command;
    if (step === plan.end) addWaits(plan.joins, caller, first);
    if (step === plan.start) addRecord(-1, caller, first);
    addWaits(at(plan.waits, step), stream, first);
    for (const node of own) {
      for (const source of node.sources) positions.set(source, list.commands.length);
      add(node.command, node, node.transfer);
    }
    addRecord(step, stream, first);
  }
  const last = nodes.at(-1);
  if (last !== undefined && plan.end === order.length) addWaits(plan.joins, caller, last);
  return { list: { streams, eventCount: events.size, ...list }, nodes: written, positions };
}

/** Removes streams without commands, except the caller's, and renumbers the others. */
function usedStreams({ streams, nodes }: Draft): {
  readonly streams: Draft["streams"];
  readonly nodes: readonly DraftNode[];
} {
  const used = new Set(nodes.map(({ command }) => command.stream));
  const kept = streams.filter(({ id, role }) => role === "caller" || used.has(id));
  if (kept.length === streams.length) return { streams, nodes };
  const idOf = new Map(kept.map(({ id }, index) => [id, makeId<CommandStreamId>(index)]));
  return {
    streams: kept.map((stream, index) => ({ ...stream, id: makeId<CommandStreamId>(index) })),
    nodes: nodes.map((node) => {
      const stream = idOf.get(node.command.stream) ?? node.command.stream;
      return stream === node.command.stream ? node : { ...node, command: { ...node.command, stream } };
    }),
  };
}

// Plans the events of one rank's commands, given their streams and dependences. Every stream has a clock of how far it
// knows each stream to have progressed. A dependence that the clock covers needs no event. The others are handled
// latest first, because the latest event of a stream covers all earlier ones.

interface EdgeStep {
  /** The index in the dependences: of a command, or of a barrier, whose events come before and after it as a whole. */
  readonly group: number;
  readonly stream: number;
  /** Whether it is an alloc or a free, which do nothing at run time. */
  readonly isMark: boolean;
}

interface EdgePlan {
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

function planEdges(
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
