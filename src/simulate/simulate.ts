/**
 * Predicts when each command of a Program runs on the machine of a profile: a discrete event simulation over all
 * streams of all ranks. The commands are those that back ends execute, and the result has the form of a trace.
 *
 * A stream runs its commands in order. A launch needs its rank's device and a copy needs the links on its way, one at a
 * time, first come, first served. Waits follow events, signals and transfers with the profile's fixed costs. Kernels
 * that could share a device run one after the other, which ends at the same time if each fills it.
 */
import { barriersIn } from "../commands/barriers.ts";
import type { Command, EventId } from "../commands/command.ts";
import type { Program, RankProgram } from "../commands/program.ts";
import { at, invariant, unreachable, pushTo } from "../support/invariant.ts";
import { isLocalCopy } from "../trace/command-work.ts";
import type { TraceEvent } from "../trace/event-table.ts";
import { createArrivals } from "./arrivals.ts";
import { createAssumptions } from "./assumption.ts";
import { commandCosts, type Cost } from "./command-cost.ts";
import { runCost } from "./gemm-cost.ts";
import type { MachineProfile } from "./machine-profile.ts";
import {
  type Calendar,
  createCalendar,
  createOccupancy,
  type Occupancy,
  type RankResources,
  resourcesOfRanks,
  type WaitingWork,
} from "./occupancy.ts";
import type { NetworkUse } from "./transfer-cost.ts";

export interface SimulateOptions {
  /** Whether a run is one launch of a graph; otherwise the host issues one command after the other. */
  readonly graph: boolean;
  /**
   * By rank: the microseconds of all GEMMs of a run that the Program is a part of (`gemmMicroseconds`), for the clock at
   * which its GEMMs run. If omitted, the Program is all of it.
   */
  readonly gemmsOfRun?: readonly number[];
}

export interface Simulation {
  /** Milliseconds until the last rank has ended, including the fixed cost of a run. */
  readonly milliseconds: number;
  /** Launches, copies and transfers, in order of start. */
  readonly trace: readonly TraceEvent[];
  /** What the profile lacks and which of its times were taken instead, one sentence each. */
  readonly assumptions: readonly string[];
}

/** A stream of a rank. */
interface Queue {
  readonly rank: number;
  readonly stream: number;
  readonly list: readonly Command[];
  /** Positions in the list. */
  readonly commands: readonly number[];
  next: number;
  /** Of the next command, if it is a launch or a copy that has been tried. */
  cost: Cost | null;
  /** Whether the latency of the next command has passed. */
  isReady: boolean;
}

/** Microseconds at which a slot was raised and not yet taken, and the queue that waits for it. */
interface Raised {
  readonly times: number[];
  waiting: { readonly queue: Queue; readonly since: number } | null;
}

/** A queue continues, or its current command ends. */
type Due = Queue | WaitingWork<Queue>;

interface State {
  readonly program: Program;
  readonly profile: MachineProfile;
  readonly costOf: (rank: number, index: number) => Cost;
  readonly calendar: Calendar<Due>;
  readonly occupancy: Occupancy<Queue>;
  readonly resources: readonly RankResources[];
  /** Per rank and command: 1 for signals and waits inside a kernel. The kernel's time includes them. */
  readonly inKernel: readonly Uint8Array[];
  /** Per rank and command: 1 for launches that follow something that is not a kernel (below). */
  readonly joins: readonly Uint8Array[];
  /** Per rank and event: when it was recorded; NaN if it was not yet. */
  readonly recorded: readonly Float64Array[];
  readonly waiting: readonly Map<number, { readonly queue: Queue; readonly since: number }[]>[];
  readonly raised: readonly Raised[];
  /** When each network interface is free again. */
  readonly nics: Map<number, number>;
  readonly trace: TraceEvent[];
  ended: number;
}

/**
 * Predicts the times of a run. Times are microseconds in the profile and milliseconds in the result. The Program must
 * verify: one that never ends fails an invariant.
 */
export function simulate(given: Program, profile: MachineProfile, { graph, gemmsOfRun }: SimulateOptions): Simulation {
  // A long Program makes the commands of a rank when they are asked for: here, those of all ranks are held.
  const program = { ...given, ranks: given.ranks.map((rank) => ({ ...rank })) };
  const queues = queuesOf(program);
  const inKernel = program.ranks.map((list) => signalsInKernels(program, list, profile));
  const calendar = createCalendar<Due>();
  const { assume, all } = createAssumptions();
  const state: State = {
    program,
    profile,
    costOf: commandCosts(program, profile, assume, gemmsOfRun),
    calendar,
    occupancy: createOccupancy<Queue>(profile.costs.underTransfer, (end, work) => {
      calendar.add(end, work);
    }),
    resources: resourcesOfRanks(program.ranks.length),
    inKernel,
    joins: program.ranks.map((list, rank) => joinsOf(list, at(inKernel, rank))),
    recorded: program.ranks.map(({ eventCount }) => new Float64Array(eventCount).fill(NaN)),
    waiting: program.ranks.map(() => new Map()),
    raised: program.slots.map(() => ({ times: [], waiting: null })),
    nics: new Map(),
    trace: [],
    ended: 0,
  };
  const arrivals = createArrivals<Queue>(program);
  const issued = (index: number): number => (graph ? 0 : index * profile.costs.issue);
  for (const queue of queues) comeBack(state, queue, 0);
  for (let what = calendar.next(); what !== null; what = calendar.next()) {
    const time = calendar.time();
    if ("queue" in what) {
      finish(state, what, time);
      continue;
    }
    const queue = what;
    const index = queue.commands[queue.next];
    if (index === undefined) {
      state.ended = Math.max(state.ended, time);
      continue;
    }
    const available = issued(index);
    if (available > time) comeBack(state, queue, available);
    else step(state, arrivals, queue, index, time);
  }
  const left = queues.filter(({ next, commands }) => next < commands.length);
  invariant(left.length === 0, "a simulated Program ends", left.slice(0, 4));
  const trace = state.trace.toSorted((a, b) => a.start - b.start);
  return {
    milliseconds: (state.ended + runCost(program, profile)) / 1000,
    trace,
    assumptions: all().map(({ text }) => text),
  };
}

function step(
  state: State,
  arrivals: ReturnType<typeof createArrivals<Queue>>,
  queue: Queue,
  index: number,
  time: number,
): void {
  const { rank } = queue;
  const command = at(queue.list, index);
  const { costs } = state.profile;
  switch (command.kind) {
    case "alloc":
    case "free":
      return goOn(state, queue, time);
    case "recordEvent": {
      const { event } = command;
      at(state.recorded, rank)[event] = time;
      for (const { queue: waiter, since } of at(state.waiting, rank).get(event) ?? []) {
        goOn(state, waiter, Math.max(since, time + costs.event));
      }
      return goOn(state, queue, time);
    }
    case "waitEvent": {
      const recorded = at(at(state.recorded, rank), command.event);
      if (!Number.isNaN(recorded)) return goOn(state, queue, Math.max(time, recorded + costs.event));
      const waiting = at(state.waiting, rank);
      pushTo(waiting, command.event, { queue, since: time });
      return;
    }
    case "signal": {
      const slot = at(state.raised, command.slot);
      const arrives = time + (at(state.inKernel, rank)[index] === 1 ? 0 : costs.signal);
      if (slot.waiting === null) slot.times.push(arrives);
      else {
        goOn(state, slot.waiting.queue, Math.max(slot.waiting.since, arrives));
        slot.waiting = null;
      }
      return goOn(state, queue, time);
    }
    case "waitSignal": {
      const slot = at(state.raised, command.slot);
      const arrived = slot.times.shift();
      if (arrived !== undefined) return goOn(state, queue, Math.max(time, arrived));
      slot.waiting = { queue, since: time };
      return;
    }
    case "transfer": {
      if (isLocalCopy(state.program, rank, command)) return occupy(state, queue, index, time);
      // The library's kernels find no free SMs beside a running GEMM. A GEMM that begins later shares the device with them.
      const held = state.occupancy.held(at(state.resources, rank).kernel);
      if (held !== null) return state.occupancy.wait(queue, held, true);
      for (const { queue: waiter, index: own, start } of arrivals.arrive(rank, index, queue, time)) {
        begin(state, waiter, state.costOf(waiter.rank, own), start);
      }
      return;
    }
    case "launch":
    case "copy":
      return occupy(state, queue, index, time);
    default:
      return unreachable(command);
  }
}

/** Starts a launch or copy, or tries again when its resources are free. */
function occupy(state: State, queue: Queue, index: number, time: number): void {
  const cost = (queue.cost ??= state.costOf(queue.rank, index));
  const latency = cost.latency + (at(state.joins, queue.rank)[index] === 1 ? state.profile.costs.join : 0);
  if (!queue.isReady && latency > 0) {
    queue.isReady = true;
    return comeBack(state, queue, time + latency);
  }
  queue.isReady = true;
  const occupied = cost.needsSms ? state.occupancy.held(at(state.resources, queue.rank).sms) : null;
  if (occupied !== null) return state.occupancy.wait(queue, occupied, true);
  const held = state.occupancy.held(cost.resources);
  if (held === null) begin(state, queue, cost, time);
  else state.occupancy.wait(queue, held);
}

function begin(state: State, queue: Queue, { resources, busy, deviceUse, network = null }: Cost, time: number): void {
  const took = network === null ? busy : Math.max(busy, useNetwork(state, network, time) - time);
  state.occupancy.begin({ queue, rank: queue.rank, resources, deviceUse }, time, took);
}

/** When a transfer that begins at `time` leaves the network: those that share an interface follow one another. */
function useNetwork({ nics }: State, { nic, latency, busy }: NetworkUse, time: number): number {
  const end = Math.max(time + latency, nics.get(nic) ?? 0) + busy;
  nics.set(nic, end);
  return end;
}

/** Queues that waited for a resource go before the stream that held it. */
function finish(state: State, work: WaitingWork<Queue>, time: number): void {
  const waiting = state.occupancy.finish(work, time);
  if (waiting === null) return;
  for (const queue of waiting) comeBack(state, queue, time);
  const { queue, rank, start } = work;
  const command = at(queue.commands, queue.next);
  state.trace.push({ rank, stream: queue.stream, command, start: start / 1000, end: time / 1000 });
  goOn(state, queue, time);
}

function goOn(state: State, queue: Queue, time: number): void {
  queue.next++;
  queue.cost = null;
  queue.isReady = false;
  comeBack(state, queue, time);
}

function comeBack({ calendar }: State, queue: Queue, time: number): void {
  calendar.add(time, queue);
}

/** None if the profile does not time such kernels together with their signals and waits. */
function signalsInKernels(program: Program, { rank, commands }: RankProgram, profile: MachineProfile): Uint8Array {
  const inside = new Uint8Array(commands.length);
  if (profile.reductionsInPeers === undefined) return inside;
  for (const { first, last } of barriersIn(commands, rank, program)) inside.fill(1, first, last + 1);
  return inside;
}

function queuesOf({ ranks }: Program): readonly Queue[] {
  return ranks.flatMap(({ rank, streams, commands }) => {
    const positions = streams.map((): number[] => []);
    for (const [index, { stream }] of commands.entries()) at(positions, stream).push(index);
    return positions.map((list, stream): Queue => ({
      rank,
      stream,
      list: commands,
      commands: list,
      next: 0,
      cost: null,
      isReady: false,
    }));
  });
}

// Finds kernels that follow something that is not a kernel: a copy of another stream, a signal, or a wait for one.
// Other engines of the device execute those. The hand-over to a kernel takes some microseconds, even if they finished
// long before.
//
//     copies: copy, signal, record e        caller: GEMM, wait e, GEMM    <- the second GEMM

/** By position in the list of a rank: 1 for such launches. `inKernel` has 1 for signals and waits inside kernels. */
function joinsOf({ commands, streams }: RankProgram, inKernel: Uint8Array): Uint8Array {
  /** Per stream: whether the last thing it did or waited for was not a kernel. */
  const isForeign = streams.map(() => false);
  const foreignEvents = new Set<EventId>();
  const joins = new Uint8Array(commands.length);
  for (const [index, command] of commands.entries()) {
    const { stream } = command;
    switch (command.kind) {
      case "alloc":
      case "free":
        break;
      case "recordEvent":
        if (at(isForeign, stream)) foreignEvents.add(command.event);
        break;
      case "waitEvent":
        if (foreignEvents.has(command.event)) isForeign[stream] = true;
        break;
      case "copy":
      case "signal":
      case "waitSignal":
        if (inKernel[index] !== 1) isForeign[stream] = true;
        break;
      case "launch":
        if (at(isForeign, stream)) joins[index] = 1;
        isForeign[stream] = false;
        break;
      case "transfer":
        isForeign[stream] = false;
        break;
      default:
        unreachable(command);
    }
  }
  return joins;
}
