/**
 * Gives each kind of work separate streams: one copy stream per device for peer copies, in order, and one or more
 * compute streams for GEMMs, in turn. A single compute stream is the caller's, which saves the edges to and from it.
 * Kernels in peers' memory and their barriers are on the copy stream too. Any other wait goes to the stream of the first
 * work that it unblocks, if that is communication, otherwise to a stream for such waits: on a stream of kernels it would
 * only begin when the kernel before it has ended, and a GPU takes 10 to 25 us even for a signal that is there. A signal
 * goes to the stream that it reports.
 *
 *     worker 1: wait, copy, signal, GEMM       ->     copies:   wait, copy, signal, wait, copy, signal
 *     worker 2: wait, copy, signal, GEMM              compute:  GEMM, GEMM, each after its copy
 */
import { type CommandStreamId, isSignalling, isWork, type StreamInfo } from "../../commands/command.ts";
import { makeId, at } from "../../support/invariant.ts";
import { dependentsOf } from "../draft/order/known-dependences.ts";
import type { Draft, DraftNode } from "../draft/draft.ts";
import type { EditContext } from "../draft/edit-ranks.ts";
import { inBarriers } from "../draft/order/order-nodes.ts";
import { isGemmLaunch } from "../draft/gemm-axes.ts";
import { draftRewrite, type Rewrite } from "../rewrite.ts";

/** The value is the number of compute streams. */
export const placeStreams: Rewrite<number> = draftRewrite((count) => (draft, context) => place(draft, context, count));

const caller = makeId<CommandStreamId>(0);

function place(draft: Draft, context: EditContext, count: number): Draft {
  const { nodes } = draft;
  const inBarrier = inBarriers(draft, context.memory);
  const isOnCopyStream = nodes.map(
    (node, position) => at(inBarrier, position) || isLinkCopy(node, draft.rank, context),
  );
  if (!nodes.some(({ command }, position) => at(isOnCopyStream, position) || isGemmLaunch(command, context.memory)))
    return draft;
  const libraries = draft.streams.filter(({ role }) => role === "communicator" || role === "pair");
  const streams: StreamInfo[] = [{ ...at(draft.streams, 0), id: caller }];
  const add = (info: Omit<StreamInfo, "id">): CommandStreamId => {
    const id = makeId<CommandStreamId>(streams.length);
    streams.push({ ...info, id });
    return id;
  };
  const libraryOf = new Map(libraries.map(({ id, role, name }) => [id, add({ role, name })]));
  const compute =
    count === 1 ? [caller] : Array.from({ length: count }, (_, i) => add({ role: "worker", name: `compute ${i}` }));
  const copies = add({ role: "copy", name: "copy stream" });
  const isCommunication = new Set([...libraryOf.values(), copies]);
  const received = add({ role: "worker", name: "received" });
  const arrivals = add({ role: "worker", name: "arrivals" });

  const { before, sequence } = context.dependences.of(nodes);
  const placed: (CommandStreamId | null)[] = nodes.map(() => null);
  let turn = 0;
  for (const [position, node] of nodes.entries()) {
    const { command } = node;
    const library = libraryOf.get(command.stream);
    if (library !== undefined) placed[position] = library;
    else if (at(isOnCopyStream, position)) placed[position] = copies;
    else if (isGemmLaunch(command, context.memory)) placed[position] = at(compute, turn++ % count);
    else if (command.stream === caller && command.kind !== "waitSignal") placed[position] = caller;
  }
  // Other kernels and copies go to the stream that makes their last input, or that first reads their output. A kernel
  // on received data gets a stream apart: it may wait long for SMs, and the next communication must not wait for it.
  const follow = (position: number, other: number): void => {
    if (placed[position] !== null) return;
    const stream = at(placed, other);
    const { kind } = at(nodes, position).command;
    const isBeside = stream !== null && isCommunication.has(stream);
    if (kind === "launch" && isBeside) placed[position] = received;
    else if (kind === "waitSignal" && !isBeside && isWork(at(nodes, other).command.kind)) placed[position] = arrivals;
    else placed[position] = stream;
  };
  const isPlaced = (position: number): boolean => !isMark(at(nodes, position).command) && at(placed, position) !== null;
  /** By join: the last placed node before it, then the first after it. */
  const ofJoins = new Map<number, number>();
  const placedAmong = (vertices: readonly number[]): readonly number[] =>
    vertices.flatMap((vertex) =>
      vertex < nodes.length ? (isPlaced(vertex) ? vertex : []) : (ofJoins.get(vertex) ?? []),
    );
  for (const vertex of sequence) {
    const kind = nodes[vertex]?.command.kind;
    if (kind === "waitSignal" || kind === "alloc" || kind === "free") continue;
    const last = placedAmong(at(before, vertex)).reduce((most, other) => Math.max(most, other), -1);
    if (last < 0) continue;
    if (kind === undefined) ofJoins.set(vertex, last);
    else follow(vertex, last);
  }
  ofJoins.clear();
  const after = dependentsOf(before);
  const firstOf = (positions: readonly number[]): number =>
    positions.reduce((least, other) => Math.min(least, other), nodes.length);
  for (const vertex of sequence.toReversed()) {
    const unblocked = placedAmong(at(after, vertex));
    const working = unblocked.filter((other) => !isSignalling(at(nodes, other).command));
    const first = firstOf(working.length === 0 ? unblocked : working);
    if (first === nodes.length) continue;
    if (vertex >= nodes.length) ofJoins.set(vertex, first);
    else if (!isMark(at(nodes, vertex).command)) follow(vertex, first);
  }
  // A mark waits for no other stream that its own has not waited for.
  for (const [position, { command }] of nodes.entries()) {
    if (!isMark(command) || at(placed, position) !== null) continue;
    const last = at(before, position).findLast((other) => other < nodes.length && at(placed, other) !== null);
    placed[position] = last === undefined ? caller : at(placed, last);
  }
  const moved = nodes.map((node, position) => ({
    ...node,
    command: { ...node.command, stream: placed[position] ?? caller },
  }));
  context.dependences.equate(moved, nodes);
  return { ...draft, streams, nodes: moved };
}

/** Whether the command does nothing at run time. */
function isMark({ kind }: DraftNode["command"]): boolean {
  return kind === "alloc" || kind === "free";
}

function isLinkCopy({ command }: DraftNode, rank: number, { memory }: EditContext): boolean {
  if (command.kind !== "copy") return false;
  return [command.source, command.destination].some(({ buffer }) => at(memory.buffers, buffer).rank !== rank);
}
