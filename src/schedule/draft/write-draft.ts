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
import type { KnownDependences } from "./order/known-dependences.ts";
import { groupDependences, nodeGroups, issueOrder } from "./order/order-nodes.ts";
import { planEdges } from "./order/plan-edges.ts";

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
