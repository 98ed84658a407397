/**
 * One rank's commands as actions: closures over addresses, streams and argument blocks that are made when the Program is prepared. A run calls them in list order and
 * allocates nothing. Signals thereby reach the driver before the waits that follow them in the list, as hardware with fewer queues than streams needs.
 */
import type { BufferRef, Command, CommandStreamId, EventId, KernelId } from "../../../commands/command.ts";
import type { Program } from "../../../commands/program.ts";
import type { Collective, View } from "../../../commands/transfer.ts";
import type { Memory } from "../../../kernels/nest.ts";
import type { Address } from "../../../kernels/phase.ts";
import { dispatch, type RuleTable } from "../../../support/dispatch.ts";
import { at, invariant } from "../../../support/invariant.ts";
import { copyKernel, identityKernel, type KernelStep, type KernelSteps, kernelSteps } from "../kernels/kernel-steps.ts";
import { productKernel } from "../kernels/product-kernel.ts";
import { productLayout } from "../matmul/product-layout.ts";
import { alignmentOf, workspaceBytes } from "../matmul/products.ts";
import type { Arenas } from "../memory/arenas.ts";
import type { HostBlocks } from "../memory/host-blocks.ts";
import type { Communicator } from "../nccl/communicators.ts";
import { transferActions } from "../nccl/transfer-actions.ts";
import { planCollective, planGroup, type TransferPlan } from "../nccl/transfer-plan.ts";
import type { Session } from "../session.ts";
import { planCopy } from "./copy-plan.ts";
import { encodeBatch, type MemoryOperation, signalOperations, waitOperations } from "./memory-operations.ts";
import { encodePlaneCopy } from "./plane-copy.ts";
import { type Progress, progressWord } from "./progress.ts";

export type Action = () => void;

export interface ActionContext {
  readonly session: Session;
  readonly program: Program;
  readonly rank: number;
  readonly arenas: Arenas;
  /** Argument blocks that live as long as the prepared Program. */
  readonly blocks: HostBlocks;
  readonly progress: Progress;
  readonly streamOf: (stream: CommandStreamId) => number;
  readonly eventOf: (event: EventId) => number;
  /** The stream's own scratch and workspace, of at least as many bytes; the same at every call with so many or fewer bytes. */
  readonly scratchOf: (stream: CommandStreamId, bytes: number) => number;
  readonly workspaceOf: (stream: CommandStreamId, bytes: number) => number;
  /** Of launches that were prepared before. */
  readonly steps: Map<string, KernelSteps>;
  readonly communicators: ReadonlyMap<string, Communicator>;
  /** NCCL goes on with a call in the background: the next action has to wait. */
  readonly inProgress: (communicator: Communicator) => void;
}

const table: RuleTable<Command, readonly Action[], [number, ActionContext]> = {
  launch: (command, _, context) => {
    return kernelActions(
      command.kernel,
      command.inputs.map(addressIn(context)),
      command.outputs.map(addressIn(context)),
      command.stream,
      context,
    );
  },
  copy: ({ source, destination, stream }, _, context) => {
    const { buffers } = context.program;
    const crossesLink = [source, destination].some(({ buffer }) => at(buffers, buffer).rank !== context.rank);
    return copyActions(source, destination, crossesLink, stream, context);
  },
  transfer: ({ communicator, stream }, index, context) => transferOf(communicator, stream, index, context),
  recordEvent: ({ event, stream }, _, context) => [
    checked(context, "cuEventRecord", (raw) => {
      const [handle, on] = [context.eventOf(event), context.streamOf(stream)];
      return () => raw.cuEventRecord(handle, on);
    }),
  ],
  waitEvent: ({ event, stream }, _, context) => [
    checked(context, "cuStreamWaitEvent", (raw) => {
      const [handle, on] = [context.eventOf(event), context.streamOf(stream)];
      return () => raw.cuStreamWaitEvent(on, handle, 0);
    }),
  ],
  signal: ({ slot, stream }, _, context) => [
    batchAction(signalOperations(context.arenas.slotAddress(slot)), stream, context),
  ],
  waitSignal: ({ slot, stream }, index, context) => [
    batchAction(
      [
        sayProgress(index, stream, context),
        ...waitOperations(context.arenas.slotAddress(slot)),
        sayProgress(index, stream, context, true),
      ],
      stream,
      context,
    ),
  ],
  alloc: () => [],
  free: () => [],
};

/** The actions of the command at `index` of the rank's list; none for lifetime marks. */
export function commandActions(index: number, context: ActionContext): readonly Action[] {
  const command = at(at(context.program.ranks, context.rank).commands, index);
  return dispatch<Command, readonly Action[], [number, ActionContext]>(table, command, index, context);
}

type Raw = Session["gpu"]["raw"];

/** `make` binds the call's arguments once. */
function checked({ session }: ActionContext, name: string, make: (raw: Raw) => () => number): Action {
  const { gpu } = session;
  const call = make(gpu.raw);
  return () => {
    const status = call();
    if (status !== 0) gpu.check(status, name);
  };
}

function batchAction(operations: readonly MemoryOperation[], stream: CommandStreamId, context: ActionContext): Action {
  const batch = encodeBatch(operations, context.blocks);
  const count = operations.length;
  const on = context.streamOf(stream);
  return checked(context, "cuStreamBatchMemOp", (raw) => () => raw.cuStreamBatchMemOp_v2(on, count, batch, 0));
}

function sayProgress(
  index: number,
  stream: CommandStreamId,
  { progress }: ActionContext,
  passed = false,
): MemoryOperation {
  return { kind: "write", address: progress.address(stream), value: progressWord(index, passed) };
}

function addressIn({ arenas }: ActionContext): (ref: BufferRef) => number {
  return ({ buffer, offset }) => arenas.bufferAddress(buffer) + offset;
}

function copyActions(
  source: View,
  destination: View,
  crossesLink: boolean,
  stream: CommandStreamId,
  context: ActionContext,
): readonly Action[] {
  const plan = planCopy(source, destination, crossesLink);
  const addressOf = addressIn(context);
  const [from, to] = [addressOf(source), addressOf(destination)];
  const on = context.streamOf(stream);
  switch (plan.kind) {
    case "none":
      return [];
    case "run": {
      const { bytes } = plan;
      return [checked(context, "cuMemcpyDtoDAsync", (raw) => () => raw.cuMemcpyDtoDAsync_v2(to, from, bytes, on))];
    }
    case "planes":
      return plan.offsets.map((offset) => {
        const { width, height, pitch } = plan;
        const copy = encodePlaneCopy(
          {
            source: from + offset.source,
            sourcePitch: pitch.source,
            destination: to + offset.destination,
            destinationPitch: pitch.destination,
            width,
            height,
          },
          context.blocks,
        );
        return checked(context, "cuMemcpy2DAsync", (raw) => () => raw.cuMemcpy2DAsync_v2(copy, on));
      });
    case "kernel":
      return [copyLaunch(source, from, destination, to, on, context)];
  }
}

function copyLaunch(
  source: View,
  from: number,
  destination: View,
  to: number,
  stream: number,
  context: ActionContext,
): Action {
  const { modules } = context.session;
  const kernel = copyKernel(source, destination, ({ kind }) => alignmentOf(kind === "input" ? from : to));
  const pointers = kernel.parameters.map(({ kind }) => (kind === "input" ? from : to));
  return modules.prepareLaunch(kernel, pointers, stream, context.blocks);
}

function kernelActions(
  id: KernelId,
  inputs: readonly number[],
  outputs: readonly number[],
  stream: CommandStreamId,
  context: ActionContext,
): readonly Action[] {
  const operand = (memory: Memory): number | null =>
    memory.kind === "scratch" ? null : at(memory.kind === "input" ? inputs : outputs, memory.position);
  const { steps, scratchBytes } = stepsOf(id, [inputs, outputs], operand, context);
  const scratch = context.scratchOf(stream, scratchBytes);
  const place = (memory: Memory): number =>
    operand(memory) ?? scratch + (memory.kind === "scratch" ? memory.offset : 0);
  return steps.map((step) => stepAction(step, place, stream, context));
}

/** Launches of one kernel at addresses of equal alignment share their sources. */
function stepsOf(
  id: KernelId,
  addresses: readonly (readonly number[])[],
  operand: (memory: Memory) => number | null,
  { program, steps }: ActionContext,
): KernelSteps {
  const key = JSON.stringify([id, addresses.map((list) => list.map(alignmentOf))]);
  const known = steps.get(key);
  if (known !== undefined) return known;
  const made = kernelSteps(at(program.kernels, id), (memory) => alignmentOf(operand(memory) ?? scratchPlaceAlignment));
  steps.set(key, made);
  return made;
}

/** Of places in the scratch, as the planner gives them out. */
const scratchPlaceAlignment = 64;

function stepAction(
  step: KernelStep,
  place: (memory: Memory) => number,
  stream: CommandStreamId,
  context: ActionContext,
): Action {
  const { modules, products } = context.session;
  const on = context.streamOf(stream);
  if (step.kind === "kernel") {
    return modules.prepareLaunch(step.source, step.source.parameters.map(place), on, context.blocks);
  }
  const { contraction, a, b, bias, c } = step;
  const addressOf = ({ memory, offset }: Address): number => place(memory) + offset;
  const addresses = {
    a: addressOf(a),
    b: addressOf(b),
    bias: bias === null ? 0 : addressOf(bias),
    c: addressOf(c),
  };
  const layout = productLayout(contraction);
  if (layout !== null) {
    const workspace = context.workspaceOf(stream, workspaceBytes);
    const product = products().prepare(layout, addresses, on, workspace);
    if (product !== null) return product;
  }
  const operands = [a, b, ...(bias === null ? [] : [bias]), c];
  const source = productKernel(
    contraction,
    operands.map(({ memory }) => memory),
  );
  return modules.prepareLaunch(source, operands.map(addressOf), on, context.blocks);
}

function transferOf(name: string, stream: CommandStreamId, index: number, context: ActionContext): readonly Action[] {
  const { session, communicators, blocks, inProgress } = context;
  const communicator = communicators.get(name);
  invariant(communicator !== undefined, "the communicator of a transfer is open", { name });
  const plan = planOf(index, context);
  const on = context.streamOf(stream);
  const actions = transferActions(plan, {
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
  return [batchAction([sayProgress(index, stream, context)], stream, context), ...actions];
}

function planOf(index: number, { program, rank }: ActionContext): TransferPlan {
  const own = at(program.ranks, rank);
  const id = own.transferOf[index] ?? null;
  invariant(id !== null, "a transfer was matched", { rank, index });
  const { members } = at(program.transfers, id);
  const operations = members.map(({ operation }) => operation);
  const position = members.findIndex((member) => member.rank === rank && member.command === index);
  const operation = at(operations, position);
  if (operation.kind === "group") return planGroup(operation);
  const collectives = operations.filter((each): each is Collective => each.kind === "collective");
  return planCollective(collectives, position);
}
