/**
 * Turns one rank's commands into work for its streams. Signals reach the driver before the waits that follow them in
 * the list, as hardware with fewer queues than streams requires.
 */
import { isAttention } from "../../../commands/attention.ts";
import { touchesPeers } from "../../../commands/barriers.ts";
import type { Command, CommandStreamId, Launch } from "../../../commands/command.ts";
import { dispatch, type RuleTable } from "../../../support/dispatch.ts";
import { at, invariant } from "../../../support/invariant.ts";
import type { Parameter } from "../kernels/kernel-source.ts";
import { linkKernel } from "../kernels/link-kernel.ts";
import { noBarriers } from "../kernels/text/barrier-text.ts";
import { type Address, alignmentOf, type ProgressWord } from "./address.ts";
import { barrierValues, noOperations, barrierShapes } from "./barrier-operations.ts";
import { copyOps } from "./copy-ops.ts";
import type { DeviceOp } from "./device-op.ts";
import { kernelOps, launchOperands } from "./launch-ops.ts";
import { progressWord, type StreamOperation } from "./memory-operations.ts";
import { launchOf, type LinkLaunch, type Planning, type QueuedWork } from "./planning.ts";
import { transferOps } from "../nccl/transfer-plan.ts";

const table: RuleTable<Command, readonly QueuedWork[], [number, Planning]> = {
  launch: (command, index, planning) => {
    const launch = linkLaunch(command, index, planning);
    if (launch !== null) return [{ kind: "linkKernel", operations: noOperations, ...launch }];
    return each(kernelOps(command, index, planning));
  },
  copy: (command, index, planning) => {
    const { buffers } = planning.program;
    const crossesLink = [command.source, command.destination].some(
      ({ buffer }) => at(buffers, buffer).rank !== planning.rank,
    );
    return each(copyOps(command, index, crossesLink, planning));
  },
  transfer: (command, index, planning) => [
    { kind: "memory", operations: [sayProgress(index, command.stream)] },
    ...each(transferOps(command, index, planning)),
  ],
  recordEvent: ({ event, stream }, command) => each([{ kind: "record", stream, command, event }]),
  waitEvent: ({ event, stream }, command) => each([{ kind: "wait", stream, command, event }]),
  signal: ({ slot }, _, { places }) => [
    { kind: "memory", operations: [{ kind: "signal", word: places.wordOf(slot) }] },
  ],
  waitSignal: ({ slot, stream }, index, { places }) => {
    const says = { progress: progressOf(stream), says: progressWord(index) };
    return [{ kind: "memory", operations: [{ kind: "wait", word: places.wordOf(slot), ...says }] }];
  },
  alloc: () => [],
  free: () => [],
};

/** The work of the command at `index` of the rank's list; none for lifetime marks. */
export function commandWork(index: number, planning: Planning): readonly QueuedWork[] {
  const command = at(at(planning.program.ranks, planning.rank).commands, index);
  return dispatch<Command, readonly QueuedWork[], [number, Planning]>(table, command, index, planning);
}

function each(ops: readonly DeviceOp[]): readonly QueuedWork[] {
  return ops.map((op) => ({ kind: "op", op }));
}

function progressOf(stream: CommandStreamId): ProgressWord {
  return { space: "progress", stream };
}

function sayProgress(index: number, stream: CommandStreamId): StreamOperation {
  return { kind: "say", progress: progressOf(stream), value: progressWord(index) };
}

/** For a kernel that accesses peers' memory in one loop over elements; null for others. `index` is the command's. */
function linkLaunch(command: Launch, index: number, planning: Planning): LinkLaunch | null {
  const { program, rank, places } = planning;
  if (!touchesPeers(program, rank, command)) return null;
  const kernel = at(program.kernels, command.kernel);
  if (isAttention(kernel)) return null;
  const operand = launchOperands(command, planning);
  const alignment = (memory: Parameters<typeof operand>[0]): number => alignmentOf(operand(memory));
  const alone = linkKernel(kernel, alignment, noBarriers);
  if (alone === null) return null;
  const valueOf = (parameter: Parameter): Address | number =>
    parameter.kind === "origin" ? at(command.origins ?? [], parameter.position) : operand(parameter);
  return {
    blocks: alone.grid[0],
    launch: (operations) => {
      const source = linkKernel(kernel, alignment, barrierShapes(operations));
      invariant(source !== null, "barriers do not change what a kernel can be", { index });
      const parameters = [...source.parameters.map(valueOf), ...barrierValues(operations, places.gateOf(index))];
      return launchOf(planning, { stream: command.stream, command: index }, source, parameters);
    },
  };
}
