/**
 * Plans what a rank's host hands to the driver and the libraries for one run: a pure function from a Program to plain
 * data. `bind` turns the data into calls, in this process or, from a plan file, in another one.
 *
 *     signal slot 3, waitSignal slot 2   ->   batch: write 1 to the peer's word 3, wait for 1 in the own word 2, ...
 *     launch k0 (a matmul)               ->   gemm: the layout of its matrices, and their addresses
 */
import {
  type Command,
  type CommandStreamId,
  type EventId,
  isBlocking,
  type StreamInfo,
  type Launch,
} from "../../../commands/command.ts";
import type { Program } from "../../../commands/program.ts";
import { fail } from "../../../diagnostics/diagnostic.ts";
import { isScaled } from "../../../ir/ops/kinds/contractions.ts";
import { makeId, at, dispatch, type RuleTable, invariant } from "../../../support/invariant.ts";
import { communicatorTeams } from "../nccl/communicators.ts";
import type { DeviceOp, DeviceOps, PeerWait } from "./device-op.ts";
import { joinWork, type ListedWork, type StreamWork, workOp } from "./join-work.ts";
import { commandPlace, programNotes } from "./list-notes.ts";
import { commandOf, waitRuns, progressWord, type StreamOperation } from "./memory-operations.ts";
import { placesOf } from "./places.ts";
import {
  createPlannedKernels,
  createPlanningTables,
  type DeviceTarget,
  launchOf,
  type LinkLaunch,
  type PlannedKernels,
  type Planning,
  type QueuedWork,
} from "./planning.ts";
import { isAttention } from "../../../commands/attention.ts";
import { touchesPeers } from "../../../commands/barriers.ts";
import { type Parameter, kernelName, type KernelSource } from "../kernels/kernel-source.ts";
import {
  noBarriers,
  barrierAfter,
  barrierBefore,
  barrierParameters,
  type Barriers,
} from "../kernels/text/barrier-text.ts";
import { type Address, alignmentOf, type ProgressWord } from "./address.ts";
import { barrierValues, noOperations, barrierShapes } from "./barrier-operations.ts";
import { copyOps } from "./copy-ops.ts";
import { kernelOps, launchOperands, sourceKey } from "./launch-ops.ts";
import { transferOps } from "../nccl/transfer-plan.ts";
import type { Kernel } from "../../../commands/kernel.ts";
import { kernelPhases } from "../../../kernels/kernel-plan.ts";
import { elementwiseBody, vectorsOf } from "../kernels/elementwise-kernel.ts";
import { groupPhases } from "../kernels/plan/nest-groups.ts";
import { kernelOf } from "../kernels/text/prelude.ts";
import type { AlignmentOf } from "../kernels/plan/vector-width.ts";

/** Tensor cores take floats of 8 bits from Ada on. */
export const scaledCapability = 89;

export interface PlanningOptions {
  /** Whether a command's signals and waits join its neighbours'. A traced run times every command by itself. */
  readonly joined?: boolean;
  /** Shared by the ranks of a Program. */
  readonly planned?: PlannedKernels;
}

/** Throws `kernel-opaque` for an attention that no kernel takes, and `gpu-unsupported` for a scaled matmul. */
export function deviceOps(
  program: Program,
  rank: number,
  target: DeviceTarget,
  { joined = true, planned = createPlannedKernels() }: PlanningOptions = {},
): DeviceOps {
  const own = at(program.ranks, rank);
  const { multiprocessors, capability } = target;
  if (capability < scaledCapability) refuseScaled(program, rank, capability);
  const places = placesOf(program, rank);
  const tables = createPlanningTables(own.streams.length);
  const planning = { program, rank, target, places, tables, planned };
  const works = own.commands.flatMap((command, index) =>
    commandWork(index, planning).map((work): ListedWork => ({
      stream: command.stream,
      index,
      work,
      isBlocking: isBlocking(command),
    })),
  );
  const issued: readonly StreamWork[] = joined ? joinWork(works, multiprocessors) : works;
  const edges = missingEdges(own.commands);
  const caller = makeId<CommandStreamId>(0);
  let events = own.eventCount;
  const edge = (from: CommandStreamId, to: readonly CommandStreamId[]): readonly DeviceOp[] => {
    if (to.length === 0) return [];
    const event = events++;
    return [
      { kind: "record", stream: from, command: -1, event },
      ...to.map((stream): DeviceOp => ({ kind: "wait", stream, command: -1, event })),
    ];
  };
  const ops = [
    ...edge(caller, edges.forks),
    ...issued.map(workOp),
    ...edges.joins.flatMap((stream) => edge(stream, [caller])),
  ];
  const priorities = streamPriorities(own.streams);
  const { kernels, gemms, attentions, scratchBytes, workspaceBytes } = tables;
  return {
    rank,
    world: program.ranks.length,
    streams: own.streams.map(({ name, role }, i) => ({ name, role, priority: at(priorities, i) })),
    events,
    memory: { ...places.needs, scratchBytes, workspaceBytes },
    kernels,
    gemms,
    attentions,
    teams: communicatorTeams(program),
    ops,
    waitRuns: issued.flatMap(longRuns),
  };
}

function refuseScaled(program: Program, rank: number, capability: number): void {
  const index = at(program.ranks, rank).commands.findIndex((command) => {
    const kernel = command.kind === "launch" ? at(program.kernels, command.kernel) : null;
    return kernel?.kind === "unit" && kernel.steps.some(isScaled);
  });
  if (index < 0) return;
  const version = (of: number): string => `compute capability ${(of / 10).toFixed(1)}`;
  fail("gpu-unsupported", "this GPU cannot multiply floats of 8 bits", {
    place: commandPlace(programNotes(program, rank), index),
    found: version(capability),
    expected: `${version(scaledCapability)} or newer`,
    help:
      "run on the CPU (--on cpu), or, unless scales are of blocks, multiply in bfloat16, with scales [], [M, 1] or " +
      '[1, N]: mul(mul(linear(cast(x, "bfloat16"), cast(weight, "bfloat16")), scaleX), scaleW)',
  });
}

/** Runs of several waits, whose stream reports only the first. */
function longRuns({ work }: StreamWork): readonly (readonly PeerWait[])[] {
  if (work.kind !== "memory") return [];
  return waitRuns(work.operations)
    .filter(({ length }) => length > 1)
    .map((run) => run.map(({ word, says }) => ({ word, command: commandOf(says) })));
}

// Streams of a list that do not start after stream 0's start, or do not end before its end. The planner adds those
// edges. The host then waits for one stream, and the whole list can be captured into a graph from stream 0. A verified
// program has no races without them.

interface StreamEdges {
  /** Streams that wait for stream 0 at the start. */
  readonly forks: readonly CommandStreamId[];
  /** Streams that stream 0 waits for at the end. */
  readonly joins: readonly CommandStreamId[];
}

export function missingEdges(commands: readonly Command[]): StreamEdges {
  const active = commands.filter(({ kind }) => kind !== "alloc" && kind !== "free");
  return { forks: forksOf(active), joins: joinsOf(active) };
}

function forksOf(commands: readonly Command[]): readonly CommandStreamId[] {
  const begun = new Set<number>([0]);
  const forks: CommandStreamId[] = [];
  for (const command of commands) {
    if (begun.has(command.stream)) continue;
    begun.add(command.stream);
    // A recordEvent always follows another command of its stream, which has the edge.
    if (command.kind !== "waitEvent") forks.push(command.stream);
  }
  return forks;
}

function joinsOf(commands: readonly Command[]): readonly CommandStreamId[] {
  const ended = new Set<number>([0]);
  const awaited = new Set<EventId>();
  const joins: CommandStreamId[] = [];
  for (let i = commands.length - 1; i >= 0; i--) {
    const command = at(commands, i);
    if (!ended.has(command.stream)) {
      ended.add(command.stream);
      if (command.kind !== "recordEvent" || !awaited.has(command.event)) joins.push(command.stream);
    }
    if (command.kind === "waitEvent") awaited.add(command.event);
  }
  return joins;
}

// The priorities of a list's streams.

/**
 * Chooses which stream runs first when an SM or a copy engine becomes free. Copies and communication do: they are few,
 * and other ranks wait for them. GEMMs on compute stream 0 have higher priority than those on stream 1. Copies wait for
 * results in stream order, so a GPU that started with stream 1 would delay every copy.
 */
export function streamPriorities(streams: readonly Pick<StreamInfo, "role">[]): readonly number[] {
  let workers = 0;
  return streams.map(({ role }) => {
    if (role === "worker") return ++workers;
    return role === "caller" ? 1 : 0;
  });
}

/*
 * Turns one rank's commands into work for its streams. Signals reach the driver before the waits that follow them in
 * the list, as hardware with fewer queues than streams requires.
 */

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
function commandWork(index: number, planning: Planning): readonly QueuedWork[] {
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
  const { program, rank, places, planned } = planning;
  if (!touchesPeers(program, rank, command)) return null;
  const kernel = at(program.kernels, command.kernel);
  if (isAttention(kernel)) return null;
  const operand = launchOperands(command, planning);
  const key = sourceKey(command, planning);
  const sourceOf = (barriers: Barriers): KernelSource | null =>
    planned.linkOf(`${key} ${JSON.stringify(barriers)}`, () =>
      linkKernel(kernel, (memory) => alignmentOf(operand(memory)), barriers),
    );
  const alone = sourceOf(noBarriers);
  if (alone === null) return null;
  const valueOf = (parameter: Parameter): Address | number =>
    parameter.kind === "origin" ? at(command.origins ?? [], parameter.position) : operand(parameter);
  return {
    blocks: alone.grid[0],
    launch: (operations) => {
      const source = sourceOf(barrierShapes(operations));
      invariant(source !== null, "barriers do not change what a kernel can be", { index });
      const parameters = [...source.parameters.map(valueOf), ...barrierValues(operations, places.gateOf(index))];
      return launchOf(planning, { stream: command.stream, command: index }, source, parameters);
    },
  };
}

/*
 * The kernel of a combination over links. It has few thread blocks, which leaves most SMs to the GEMM beside it, and
 * many wide loads in flight per thread, because peers' memory has a high latency. It synchronizes with the peers
 * itself.
 *
 *     8 blocks of 512 threads, each with 16 loads of 16 bytes in flight: 4 vectors of 4 ranks' inputs
 */

const blockThreads = 512;
/**
 * Measured on H200: with 16-byte accesses 8 blocks are as fast as 64. Narrower accesses need more blocks for the same
 * bytes in flight.
 */
const fewBlocks = 8;
const mostBlocks = 64;
const wideBytes = 16;
const loadsPerThread = 16;

/**
 * Null for a kernel that is not one loop over elements. The signals' and waits' parameters follow those of
 * `parameters`.
 */
export function linkKernel(kernel: Kernel, alignmentOf: AlignmentOf, barriers: Barriers): KernelSource | null {
  const [group, ...others] = groupPhases(kernelPhases(kernel).phases);
  if (group?.kind !== "nests" || others.length > 0) return null;
  const { nests } = group;
  const { width, vectors, bytes } = vectorsOf(nests, alignmentOf);
  const wanted = Math.min(mostBlocks, Math.ceil((fewBlocks * wideBytes) / bytes));
  const blocks = Math.max(1, Math.min(wanted, Math.ceil(vectors / blockThreads)));
  const copies = Math.max(1, Math.floor(loadsPerThread / kernel.inputs.length));
  const stride = blocks * blockThreads;
  const most = vectors + stride * copies;
  const { parameters, parameterText, type, lines } = elementwiseBody(nests, { width, vectors, copies, stride, most });
  const all = [parameterText, ...barrierParameters(barriers)].join(", ");
  const text = [
    `extern "C" __global__ void __launch_bounds__(${blockThreads}) ${kernelName}(${all}) {`,
    ...barrierBefore(barriers, blocks, blockThreads),
    `for (${type} first = blockIdx.x * ${blockThreads}u + threadIdx.x; first < ${vectors}u; first += ${stride * copies}u) {`,
    ...lines,
    "}",
    ...barrierAfter(barriers, blocks, blockThreads),
    "}",
  ];
  return kernelOf(text, [blocks, 1, 1], blockThreads, parameters);
}
