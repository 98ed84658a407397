/**
 * Work of a list as actions, where memory operations that follow each other in the list on one stream become one call: in a graph, one node.
 *
 *     worker 1: signal slot 0      cuStreamBatchMemOp(worker 1): write 1 to slot 0's word of the peer,
 *     worker 1: waitSignal slot 2    wait for 1 in slot 2's word, write 0
 *
 * Operations of a batch are enqueued in its order. Those with work of other streams between them stay apart: nothing may be issued earlier or later than its place
 * in the list, since a signal that is held back behind a wait of another stream could hang.
 */
import type { CommandStreamId } from "../../../commands/command.ts";
import { unreachable } from "../../../support/unreachable.ts";
import { type Action, type ActionContext, checked, type Work } from "./action-context.ts";
import { encodeBatch, type MemoryOperation } from "./memory-operations.ts";

export interface StreamWork {
  readonly stream: CommandStreamId;
  /** The command that it belongs to; -1 for none. */
  readonly index: number;
  readonly work: Work;
}

/** Far below what the driver takes in one call, 256. */
const mostOperations = 64;

/** In list order. A joined piece belongs to the first of its commands. */
export function joinWork(list: readonly StreamWork[]): readonly StreamWork[] {
  const joined: StreamWork[] = [];
  for (const piece of list) {
    const last = joined.at(-1);
    const operations = last?.stream === piece.stream ? together(last.work, piece.work) : null;
    if (last === undefined || operations === null) joined.push(piece);
    else joined[joined.length - 1] = { ...last, work: { kind: "memory", operations } };
  }
  return joined;
}

function together(first: Work, second: Work): readonly MemoryOperation[] | null {
  if (first.kind !== "memory" || second.kind !== "memory") return null;
  const operations = [...first.operations, ...second.operations];
  return operations.length <= mostOperations ? operations : null;
}

/** Lays out the arguments of memory operations; a call is its action. */
export function workAction(work: Work, stream: CommandStreamId, context: ActionContext): Action {
  switch (work.kind) {
    case "call":
      return work.action;
    case "memory": {
      const batch = encodeBatch(work.operations, context.blocks);
      const count = work.operations.length;
      const on = context.streamOf(stream);
      return checked(context, "cuStreamBatchMemOp", (raw) => () => raw.cuStreamBatchMemOp_v2(on, count, batch, 0));
    }
    default:
      return unreachable(work);
  }
}
