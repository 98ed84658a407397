/**
 * When each command of a Program would run on a machine of which a profile was measured: a simulation of discrete events over all streams of all ranks.
 * The commands are those that back ends execute; what it says of them has the form of a trace.
 *
 * A stream runs its commands in order. A launch needs its rank's device, a copy the links on its way, one at a time and first come, first
 * served; waits follow events, signals and transfers with the profile's fixed costs. Kernels that could share a device follow each
 * other, which ends at the same time where each of them fills it.
 */
import type { Program } from "../commands/program.ts";
import { at, invariant } from "../support/invariant.ts";
import { unreachable } from "../support/unreachable.ts";
import type { TraceEvent } from "../trace/event.ts";
import { type Calendar, createCalendar } from "./calendar.ts";
import { commandCosts, type Cost, type Resource } from "./command-cost.ts";
import { createMeetings } from "./meetings.ts";
import type { MachineProfile } from "./machine-profile.ts";

export interface SimulateOptions {
  /** Whether a run is one launch of a graph; else the host issues command after command. */
  readonly graph: boolean;
}

export interface Simulation {
  /** Until the last rank has ended, the fixed cost of a run included. */
  readonly milliseconds: number;
  /** Of launches, copies and transfers, in order of their start. */
  readonly trace: readonly TraceEvent[];
}

/** A stream of a rank. */
interface Queue {
  readonly rank: number;
  readonly stream: number;
  /** Positions in the rank's list. */
  readonly commands: readonly number[];
  next: number;
  /** Whether the latency of the next command has passed. */
  isReady: boolean;
}

/** Microseconds at which a slot was raised and not yet taken, and the queue that waits for it. */
interface Raised {
  readonly times: number[];
  waiting: { readonly queue: Queue; readonly since: number } | null;
}

interface State {
  readonly program: Program;
  readonly profile: MachineProfile;
  readonly costOf: (rank: number, index: number) => Cost;
  readonly calendar: Calendar<Queue>;
  readonly free: Map<Resource, number>;
  /** Per rank and event: when it was recorded. */
  readonly recorded: readonly Map<number, number>[];
  readonly waiting: readonly Map<number, { readonly queue: Queue; readonly since: number }[]>[];
  readonly raised: readonly Raised[];
  /** Per rank: until when transfers are under way. */
  readonly transferring: number[];
  readonly trace: TraceEvent[];
  ended: number;
}

/** Throws an invariant if the Program does not come to its end: `verify` says so beforehand. */
export function simulate(program: Program, profile: MachineProfile, { graph }: SimulateOptions): Simulation {
  const queues = queuesOf(program);
  const calendar = createCalendar<Queue>();
  const state: State = {
    program,
    profile,
    costOf: commandCosts(program, profile),
    calendar,
    free: new Map(),
    recorded: program.ranks.map(() => new Map()),
    waiting: program.ranks.map(() => new Map()),
    raised: program.slots.map(() => ({ times: [], waiting: null })),
    transferring: program.ranks.map(() => 0),
    trace: [],
    ended: 0,
  };
  const meetings = createMeetings<Queue>(program);
  const issued = (index: number): number => (graph ? 0 : index * profile.costs.issue);
  for (const queue of queues) calendar.add(0, queue);
  for (let entry = calendar.next(); entry !== null; entry = calendar.next()) {
    const queue = entry.what;
    const index = queue.commands[queue.next];
    if (index === undefined) {
      state.ended = Math.max(state.ended, entry.time);
      continue;
    }
    const available = issued(index);
    if (available > entry.time) calendar.add(available, queue);
    else step(state, meetings, queue, index, entry.time);
  }
  const left = queues.filter(({ next, commands }) => next < commands.length);
  invariant(left.length === 0, "a simulated Program comes to its end", left.slice(0, 4));
  const trace = state.trace.toSorted((a, b) => a.start - b.start);
  return { milliseconds: (state.ended + profile.costs.run) / 1000, trace };
}

function step(
  state: State,
  meetings: ReturnType<typeof createMeetings<Queue>>,
  queue: Queue,
  index: number,
  time: number,
): void {
  const { rank } = queue;
  const command = at(at(state.program.ranks, rank).commands, index);
  const { costs } = state.profile;
  switch (command.kind) {
    case "alloc":
    case "free":
      return goOn(state, queue, time);
    case "recordEvent": {
      const { event } = command;
      at(state.recorded, rank).set(event, time);
      for (const { queue: waiter, since } of at(state.waiting, rank).get(event) ?? []) {
        goOn(state, waiter, Math.max(since, time + costs.event));
      }
      return goOn(state, queue, time);
    }
    case "waitEvent": {
      const recorded = at(state.recorded, rank).get(command.event);
      if (recorded !== undefined) return goOn(state, queue, Math.max(time, recorded + costs.event));
      const waiting = at(state.waiting, rank);
      waiting.set(command.event, [...(waiting.get(command.event) ?? []), { queue, since: time }]);
      return;
    }
    case "signal": {
      const slot = at(state.raised, command.slot);
      const arrives = time + costs.signal;
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
      for (const { queue: member, index: own, start } of meetings.arrive(rank, index, queue, time)) {
        const { busy } = state.costOf(member.rank, own);
        finish(state, member, own, start, start + busy);
        state.transferring[member.rank] = Math.max(at(state.transferring, member.rank), start + busy);
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

/** Starts a launch or copy, or comes back when what it needs is free. */
function occupy(state: State, queue: Queue, index: number, time: number): void {
  const { resources, latency, busy, isProduct } = state.costOf(queue.rank, index);
  if (!queue.isReady && latency > 0) {
    queue.isReady = true;
    state.calendar.add(time + latency, queue);
    return;
  }
  const free = Math.max(time, ...resources.map((resource) => state.free.get(resource) ?? 0));
  if (free > time) {
    queue.isReady = true;
    state.calendar.add(free, queue);
    return;
  }
  const overlap = isProduct ? Math.max(0, at(state.transferring, queue.rank) - time) : 0;
  const end = time + busy + slowdown(overlap, busy, state.profile.costs.underTransfer);
  for (const resource of resources) state.free.set(resource, end);
  finish(state, queue, index, time, end);
}

/** What a product of `busy` takes longer where a transfer goes on beside it for `overlap`. */
function slowdown(overlap: number, busy: number, factor: number): number {
  // Under the transfer work goes `factor` times as slowly: in `overlap` it does overlap / factor of it.
  const done = Math.min(busy, overlap / factor);
  return done * (factor - 1);
}

function finish(state: State, queue: Queue, command: number, start: number, end: number): void {
  const { rank, stream } = queue;
  state.trace.push({ rank, stream, command, start: start / 1000, end: end / 1000 });
  goOn(state, queue, end);
}

function goOn(state: State, queue: Queue, time: number): void {
  queue.next++;
  queue.isReady = false;
  state.calendar.add(time, queue);
}

function queuesOf({ ranks }: Program): readonly Queue[] {
  return ranks.flatMap(({ rank, streams, commands }) => {
    const positions = streams.map((): number[] => []);
    for (const [index, { stream }] of commands.entries()) at(positions, stream).push(index);
    return positions.map((list, stream): Queue => ({ rank, stream, commands: list, next: 0, isReady: false }));
  });
}
