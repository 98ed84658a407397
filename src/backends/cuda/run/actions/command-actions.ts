/**
 * Turns one rank's commands into work for its streams: closures over addresses, streams and argument blocks, made when
 * the Program is prepared. A run calls them in list order and allocates nothing. Signals reach the driver before the
 * waits that follow them in the list, as hardware with fewer queues than streams requires.
 */
import type { Command, CommandStreamId } from "../../../../commands/command.ts";
import { dispatch, type RuleTable } from "../../../../support/dispatch.ts";
import { at } from "../../../../support/invariant.ts";
import { type Action, type ActionContext, checked, type Work } from "./action-context.ts";
import { copyActions } from "./copy-actions.ts";
import { kernelActions } from "./launch-actions.ts";
import { linkLaunch } from "./link-launch.ts";
import { noOperations } from "./barrier-operations.ts";
import type { StreamOperation } from "./memory-operations.ts";
import { progressWord } from "../stuck/progress.ts";
import { transferActionsOf } from "./transfer-command.ts";

const table: RuleTable<Command, readonly Work[], [number, ActionContext]> = {
  launch: (command, index, context) => {
    const launch = linkLaunch(command, index, context);
    if (launch !== null) return [{ kind: "linkKernel", operations: noOperations, ...launch }];
    return calls(kernelActions(command, context));
  },
  copy: (command, _, context) => {
    const { buffers } = context.program;
    const crossesLink = [command.source, command.destination].some(
      ({ buffer }) => at(buffers, buffer).rank !== context.rank,
    );
    return calls(copyActions(command, crossesLink, context));
  },
  transfer: ({ communicator, stream }, index, context) => [
    { kind: "memory", operations: [sayProgress(index, stream, context)] },
    ...calls(transferActionsOf(communicator, stream, index, context)),
  ],
  recordEvent: ({ event, stream }, _, context) => {
    const [handle, on] = [context.eventOf(event), context.streamOf(stream)];
    return calls([checked(context, "cuEventRecord", (raw) => () => raw.cuEventRecord(handle, on))]);
  },
  waitEvent: ({ event, stream }, _, context) => {
    const [handle, on] = [context.eventOf(event), context.streamOf(stream)];
    return calls([checked(context, "cuStreamWaitEvent", (raw) => () => raw.cuStreamWaitEvent(on, handle, 0))]);
  },
  signal: ({ slot }, _, { arenas }) => [
    { kind: "memory", operations: [{ kind: "signal", word: arenas.slotAddress(slot) }] },
  ],
  waitSignal: ({ slot, stream }, index, { arenas, progress }) => {
    const word = arenas.slotAddress(slot);
    const wait = { kind: "wait", word, progress: progress.address(stream), says: progressWord(index) } as const;
    return [{ kind: "memory", operations: [wait] }];
  },
  alloc: () => [],
  free: () => [],
};

/** The work of the command at `index` of the rank's list; none for lifetime marks. */
export function commandWork(index: number, context: ActionContext): readonly Work[] {
  const command = at(at(context.program.ranks, context.rank).commands, index);
  return dispatch<Command, readonly Work[], [number, ActionContext]>(table, command, index, context);
}

function calls(actions: readonly Action[]): readonly Work[] {
  return actions.map((action) => ({ kind: "call", action }));
}

function sayProgress(index: number, stream: CommandStreamId, { progress }: ActionContext): StreamOperation {
  return { kind: "say", progress: progress.address(stream), value: progressWord(index) };
}
