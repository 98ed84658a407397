/**
 * Joins consecutive memory operations of one stream into one call, which is one node of a graph. A link kernel absorbs
 * the operations directly before and after it.
 *
 *     worker 1: signal slot 0      cuStreamBatchMemOp(worker 1): write 1 to slot 0's word of the peer,
 *     worker 1: waitSignal slot 2    wait for 1 in slot 2's word and in slot 3's, write 0 to both
 *     worker 1: waitSignal slot 3
 *
 * The operations of a batch are enqueued in order. A signal may be issued later than in the list, with the next batch
 * of its stream, if nothing in between waits for a peer. Nothing else moves: a signal that is delayed past another
 * stream's wait could hang.
 */
import type { CommandStreamId } from "../../../commands/command.ts";
import { at, unreachable } from "../../../support/invariant.ts";
import { isInOrder, takenBefore } from "./barrier-operations.ts";
import type { DeviceOp } from "./device-op.ts";
import { memoryOperations } from "./memory-operations.ts";
import type { QueuedWork } from "./planning.ts";

export interface StreamWork {
  readonly stream: CommandStreamId;
  /** The command it belongs to; -1 for none. */
  readonly index: number;
  readonly work: QueuedWork;
}

/** Work as the list has it. */
export interface ListedWork extends StreamWork {
  /** Whether it waits for peers. */
  readonly isBlocking: boolean;
}

/** Well below 256, the most the driver takes in one call. */
const mostOperations = 64;

/** In list order. Joined work belongs to its link kernel, or else to its first command. */
export function joinWork(list: readonly ListedWork[], smCount: number): readonly StreamWork[] {
  const mayAbsorb = leavesHalfOfGpu(list, smCount);
  const joined: StreamWork[] = [];
  for (const piece of signalsWithNext(list)) {
    const last = joined.at(-1);
    const both = last?.stream === piece.stream ? joinPair(last.work, piece.work, mayAbsorb) : null;
    if (last === undefined || both === null) {
      joined.push(piece);
      continue;
    }
    joined.pop();
    const [first, second] = both;
    const whose = piece.work.kind === "linkKernel" ? piece : last;
    if (second === undefined) joined.push({ ...whose, work: first });
    else joined.push({ ...last, work: first }, { ...piece, work: second });
  }
  return joined;
}

/** Moves signals to the next memory operations of their stream if no wait for a peer is in between. */
function signalsWithNext(list: readonly ListedWork[]): readonly StreamWork[] {
  const previous = new Map<CommandStreamId, number>();
  /** By position: the position of signals that move directly before it. */
  const sinking = new Map<number, number>();
  let lastBlocking = -1;
  for (const [position, { stream, work, isBlocking }] of list.entries()) {
    const other = previous.get(stream);
    if (work.kind === "memory" && other !== undefined && other > lastBlocking && isSignals(list[other]?.work))
      sinking.set(position, other);
    if (isBlocking) lastBlocking = position;
    previous.set(stream, position);
  }
  const moved = new Set(sinking.values());
  const from = (position: number): readonly StreamWork[] => {
    const chain: StreamWork[] = [];
    for (let next: number | undefined = position; next !== undefined; next = sinking.get(next))
      chain.push(at(list, next));
    return chain.toReversed();
  };
  return list.flatMap((_, position) => (moved.has(position) ? [] : from(position)));
}

function isSignals(work: QueuedWork | undefined): boolean {
  return work?.kind === "memory" && work.operations.every(({ kind }) => kind === "signal");
}

/**
 * Whether kernels that wait for peers leave half of the GPU free for the work that their peers wait for, even if all of
 * them wait. A waiting thread block may occupy an SM by itself, and each stream may run one such kernel. If they leave
 * less, kernels are launched only when their peers are ready.
 */
function leavesHalfOfGpu(list: readonly StreamWork[], smCount: number): boolean {
  const most = new Map<CommandStreamId, number>();
  for (const { stream, work } of list)
    if (work.kind === "linkKernel") most.set(stream, Math.max(most.get(stream) ?? 0, work.blocks));
  return [...most.values()].reduce((sum, blocks) => sum + blocks, 0) <= smCount / 2;
}

/**
 * Joins two neighbours of one stream into one, or into two if the second absorbs part of the first. Null if they stay
 * as they are.
 */
function joinPair(
  first: QueuedWork,
  second: QueuedWork,
  mayAbsorb: boolean,
): readonly [QueuedWork, QueuedWork?] | null {
  if (first.kind === "op" || second.kind === "op") return null;
  if (second.kind === "memory") {
    const operations = [...(first.kind === "memory" ? first.operations : first.operations.after), ...second.operations];
    if (first.kind === "memory") {
      return memoryOperations(operations).length <= mostOperations ? [{ kind: "memory", operations }] : null;
    }
    if (!mayAbsorb || !isInOrder(operations)) return null;
    return [{ ...first, operations: { ...first.operations, after: operations } }];
  }
  if (first.kind === "linkKernel" || !mayAbsorb) return null;
  const before = takenBefore(first.operations);
  if (before.length === 0) return null;
  const linkWork: QueuedWork = { ...second, operations: { ...second.operations, before } };
  const left = first.operations.slice(0, first.operations.length - before.length);
  return left.length === 0 ? [linkWork] : [{ kind: "memory", operations: left }, linkWork];
}

/** The operation of a stream's work. */
export function workOp({ work, stream, index }: StreamWork): DeviceOp {
  switch (work.kind) {
    case "op":
      return work.op;
    case "linkKernel":
      return work.launch(work.operations);
    case "memory":
      return { kind: "batch", stream, command: index, operations: memoryOperations(work.operations) };
    default:
      return unreachable(work);
  }
}
