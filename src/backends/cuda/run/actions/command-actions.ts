/**
 * Turns one rank's commands into work for its streams: closures over addresses, streams and argument blocks, made when
 * the Program is prepared. A run calls them in list order and allocates nothing. Signals reach the driver before the
 * waits that follow them in the list, as hardware with fewer queues than streams requires.
 */
import { isAttention } from "../../../../commands/attention.ts";
import type { Command, CommandStreamId, Launch } from "../../../../commands/command.ts";
import { dispatch, type RuleTable } from "../../../../support/dispatch.ts";
import { at, invariant } from "../../../../support/invariant.ts";
import { type Action, type ActionContext, addressIn, checked, type LinkLaunch, type Work } from "./action-context.ts";
import { copyActions, copyLaunch } from "./copy-actions.ts";
import { kernelActions } from "./launch-actions.ts";
import { barrierValues, noOperations, shapesOf } from "./barrier-operations.ts";
import type { StreamOperation } from "./memory-operations.ts";
import { progressWord } from "../stuck/progress.ts";
import { touchesPeers } from "../../../../commands/barriers.ts";
import type { Memory } from "../../../../kernels/nests/nest.ts";
import type { Parameter } from "../../kernels/kernel-source.ts";
import { linkKernel } from "../../kernels/link-kernel.ts";
import { noBarriers } from "../../kernels/text/barrier-text.ts";
import { alignmentOf } from "../../memory/device-memory.ts";
import type { Collective } from "../../../../commands/transfer.ts";
import { identityKernel } from "../../kernels/plan/kernel-steps.ts";
import { transferActions } from "../../nccl/transfer-actions.ts";
import { planCollective, planGroup } from "../../nccl/transfer-plan.ts";
import type { TransferPlan } from "../../nccl/plan-builder.ts";

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

/** For a kernel that accesses peers' memory in one loop over elements; null for others. `index` is the command's. */
function linkLaunch(command: Launch, index: number, context: ActionContext): LinkLaunch | null {
  const { program, rank, session, blocks } = context;
  const { kernel: id, inputs, outputs, stream } = command;
  if (!touchesPeers(program, rank, command)) return null;
  const kernel = at(program.kernels, id);
  if (isAttention(kernel)) return null;
  const addresses = { input: inputs.map(addressIn(context)), output: outputs.map(addressIn(context)) };
  const operand = (memory: Parameter): number => {
    if (memory.kind === "origin") return at(command.origins ?? [], memory.position);
    invariant(memory.kind !== "scratch", "a kernel that is one loop over elements has no scratch", { index });
    return at(addresses[memory.kind], memory.position);
  };
  const alignment = (memory: Memory): number => alignmentOf(operand(memory));
  const alone = linkKernel(kernel, alignment, noBarriers);
  if (alone === null) return null;
  return {
    blocks: alone.grid[0],
    launch: (operations) => {
      const source = linkKernel(kernel, alignment, shapesOf(operations));
      invariant(source !== null, "barriers do not change what a kernel can be", { index });
      const pointers = [...source.parameters.map(operand), ...barrierValues(operations, context.gateOf(index))];
      return session.modules.prepareLaunch(source, pointers, context.streamOf(stream), blocks);
    },
  };
}

/** `name` is the communicator's, `index` the command's. */
function transferActionsOf(
  name: string,
  stream: CommandStreamId,
  index: number,
  context: ActionContext,
): readonly Action[] {
  const { session, communicators, blocks, inProgress } = context;
  const communicator = communicators.get(name);
  invariant(communicator !== undefined, "the communicator of a transfer is open", { name });
  const plan = planOf(index, context);
  const on = context.streamOf(stream);
  return transferActions(plan, {
    communicator,
    communicators: session.communicators(),
    stream: on,
    scratch: context.scratchOf(stream, plan.scratchBytes),
    addressOf: addressIn(context),
    copy: (source, from, destination, to) => copyLaunch(source, from, destination, to, on, context),
    fillIdentity: (op, dtype, count, to) => {
      const kernel = identityKernel(op, dtype, count, () => alignmentOf(to));
      return session.modules.prepareLaunch(kernel, [to], on, blocks);
    },
    inProgress,
  });
}

function planOf(index: number, { program, rank }: ActionContext): TransferPlan {
  const own = at(program.ranks, rank);
  const id = own.transferOf[index] ?? null;
  invariant(id !== null, "a transfer was matched", { rank, index });
  const { participants } = at(program.transfers, id);
  const operations = participants.map(({ operation }) => operation);
  const position = participants.findIndex((participant) => participant.rank === rank && participant.command === index);
  const operation = at(operations, position);
  if (operation.kind === "group") return planGroup(operation);
  const collectives = operations.filter((each): each is Collective => each.kind === "collective");
  return planCollective(collectives, position);
}
