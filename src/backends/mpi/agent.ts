/**
 * A process's agent, on its main thread: during a run it sends what slots ask for, receives what other processes send,
 * and signals slots, as if the other processes' ranks ran here. It holds the run open until every process has done all
 * commands, because others may still ask for this one's memory.
 */
import type { Program } from "../../commands/program.ts";
import { contiguousStrides, type View } from "../../commands/view.ts";
import { type Diagnostic, DiagnosticError, fail } from "../../diagnostics/diagnostic.ts";
import type { RunProgress } from "../../machine/execution.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import type { AddressSpace } from "../cpu/address-space.ts";
import type { OutsideRun } from "../cpu/threads/threaded-group.ts";
import { abortSchedule, allDone, isOver, onlyHeld, releaseRun, type Scheduler } from "../cpu/threads/scheduler.ts";
import type { SynchroniseQueues } from "../cpu/threads/synchronise-queues.ts";
import { type MessageNumber, runEnds, type SharedBytes, createSharedBytes, tags } from "./mpi-messages.ts";
import type { Channel } from "./split/growing-program.ts";
import { elementCount } from "../../numerics/tensor/host-tensor.ts";

/** What the agent needs of MPI (MpiMessages has it). */
export interface Transport {
  /** The number of this process, and of all. */
  readonly rank: number;
  readonly size: number;
  readonly send: (bytes: SharedBytes, peer: number, tag: number) => MessageNumber;
  readonly receive: (bytes: SharedBytes, peer: number, tag: number) => MessageNumber;
  readonly completed: () => readonly MessageNumber[];
}

export interface AgentWork {
  readonly program: Program;
  readonly channels: readonly Channel[];
  /** The tag of the first channel. */
  readonly firstTag: number;
  readonly progress: RunProgress;
  readonly memory: SharedBytes;
  readonly space: AddressSpace;
  readonly synchronise: SynchroniseQueues;
}

/** A channel's end in this process. */
interface End {
  readonly channel: Channel;
  readonly data: ViewBytes | null;
}

const nothing = createSharedBytes(0);
/** Milliseconds without progress after which the agent leaves the core to its workers for a millisecond at a time. */
const eager = 1;
/** Milliseconds of polling before the event loop gets a turn, for time-outs and the replies of workers. */
const turn = 0.1;
/** Milliseconds for the news of a failure to leave. */
const farewell = 300;

export function createAgent(transport: Transport, work: AgentWork): OutsideRun {
  const { rank: own, size } = transport;
  const { channels, memory, space, firstTag } = work;
  const { tables, state } = work.progress;
  const slotWord = (slot: number): number => tables.layout.slots + slot;
  const tagOf = ({ id }: Channel): number => firstTag + id;
  const endOf = (channel: Channel, side: "source" | "destination"): End => {
    const view = channel.payload?.[side];
    const data = view === undefined ? null : viewBytes(memory, at(space.buffers, view.buffer) + view.offset, view);
    return { channel, data };
  };
  const leaving = new Map(channels.filter(({ from }) => from === own).map((each) => [each.id, endOf(each, "source")]));
  const arriving = channels.filter(({ to }) => to === own).map((each) => endOf(each, "destination"));
  const asked = [...leaving.values()].filter(({ channel }) => channel.raise !== null && channel.count > 0);
  const others = Array.from({ length: size }, (_, process) => process).filter((process) => process !== own);

  return { run: (scheduler) => run(scheduler).catch((error: unknown) => given(error, scheduler)) };

  async function run(scheduler: Scheduler): Promise<Diagnostic | null> {
    const sending = new Map<MessageNumber, Channel | null>();
    const receiving = new Map<MessageNumber, () => void>();
    const left = new Map(asked.map(({ channel }) => [channel.id, channel.count]));
    const expected = new Map(arriving.map(({ channel }) => [channel.id, channel.count]));
    const ends = new Map(others.map((process) => [process, word(runEnds.done)]));
    const said: { failure: number | null; own: boolean } = { failure: null, own: false };
    const send = (end: End): void => {
      end.data?.pack();
      sending.set(transport.send(end.data?.bytes ?? nothing, end.channel.to, tagOf(end.channel)), end.channel);
    };
    const signal = (slot: number): void => {
      if (Atomics.compareExchange(state, slotWord(slot), 0, 1) !== 0) slotRaisedTwice(work.program, slot);
      work.synchronise(scheduler, at(tables.slotWaiters, slot));
    };
    const receive = (end: End): void => {
      const { channel, data } = end;
      const number = transport.receive(data?.bytes ?? nothing, channel.from, tagOf(channel));
      receiving.set(number, () => {
        data?.unpack();
        for (const slot of channel.slots) signal(slot);
        const answer = channel.reply === null ? undefined : leaving.get(channel.reply);
        if (answer !== undefined) send(answer);
        const more = (expected.get(channel.id) ?? 0) - 1;
        expected.set(channel.id, more);
        if (more > 0) receive(end);
      });
    };
    const tell = (outcome: number): void => {
      said.own = true;
      for (const process of others) sending.set(transport.send(word(outcome), process, tags.runEnd), null);
    };
    let unready: readonly End[] = arriving.filter(({ channel }) => channel.ready !== null);
    for (const end of arriving) if (end.channel.count > 0 && end.channel.ready === null) receive(end);
    for (const [process, bytes] of ends) {
      receiving.set(transport.receive(bytes, process, tags.runEnd), () => {
        if (bytes[0] === runEnds.failed) said.failure ??= process;
        ends.delete(process);
      });
    }
    let quietSince = performance.now();
    let turnSince = quietSince;
    for (;;) {
      let moved = false;
      for (const number of transport.completed()) {
        moved = true;
        const left = sending.get(number)?.sent ?? null;
        if (left !== null) signal(left);
        sending.delete(number);
        receiving.get(number)?.();
        receiving.delete(number);
      }
      for (const end of asked) {
        const { id, raise } = end.channel;
        const more = left.get(id) ?? 0;
        if (more === 0 || raise === null || Atomics.compareExchange(state, slotWord(raise), 1, 0) !== 1) continue;
        left.set(id, more - 1);
        moved = true;
        send(end);
      }
      if (unready.length > 0) {
        const isReady = ({ channel: { ready } }: End): boolean =>
          ready !== null && Atomics.compareExchange(state, slotWord(ready), 1, 0) === 1;
        const still = unready.filter((end) => {
          if (!isReady(end)) return true;
          receive(end);
          return false;
        });
        moved ||= still.length < unready.length;
        unready = still;
      }
      if (said.failure !== null) {
        abortSchedule(scheduler);
        return lost(said.failure);
      }
      if (isOver(scheduler)) {
        // Its own commands failed, or ran out of time.
        if (!said.own) tell(runEnds.failed);
        await flushed(transport, sending);
        return null;
      }
      if (!said.own && allDone(scheduler)) tell(runEnds.done);
      if (said.own && ends.size === 0 && sending.size === 0) {
        releaseRun(scheduler);
        return null;
      }
      const time = performance.now();
      if (moved) quietSince = time;
      const isQuiet = time - quietSince >= eager;
      if (!isQuiet && time - turnSince < turn) continue;
      await (isQuiet && !onlyHeld(scheduler) ? aMillisecond() : nextTurn());
      turnSince = performance.now();
    }
  }
}

/** What the agent itself found wrong. */
function given(error: unknown, scheduler: Scheduler): Diagnostic | null {
  abortSchedule(scheduler);
  if (error instanceof DiagnosticError) return error.diagnostics[0] ?? null;
  throw error;
}

async function flushed(transport: Transport, sending: Map<MessageNumber, unknown>): Promise<void> {
  const deadline = performance.now() + farewell;
  while (sending.size > 0 && performance.now() < deadline) {
    for (const number of transport.completed()) sending.delete(number);
    await aMillisecond();
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

function aMillisecond(): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, 1));
}

function word(value: number): SharedBytes {
  const bytes = createSharedBytes(1);
  bytes[0] = value;
  return bytes;
}

function slotRaisedTwice({ slots }: Program, slot: number): never {
  const { signaller, waiter } = at(slots, slot);
  return fail({
    code: "slot-overrun",
    message: `rank ${signaller} signals rank ${waiter} again before rank ${waiter} has waited for the previous signal`,
    found: `slot ${slot} still holds a signal`,
    expected: "every signal comes after the wait for the previous signal, also across repeated runs",
    help: `wait for this communication on rank ${waiter} before rank ${signaller} posts it again`,
  });
}

function lost(process: number): Diagnostic {
  return {
    code: "rank-failed",
    message: `process ${process} failed, so the run ended on all processes`,
    found: `process ${process} gave up its run`,
    expected: "every process to run until the end",
    help: "read that process's own message",
  };
}

// The bytes of a view in a memory, as one message has them: its elements in row-major order.

interface ViewBytes {
  /** The memory itself where the elements lie in that order, otherwise a buffer of its own. */
  readonly bytes: SharedBytes;
  /** Copies the elements from the memory into `bytes`. */
  readonly pack: () => void;
  /** Copies the elements from `bytes` into the memory. */
  readonly unpack: () => void;
}

/** `address`: of the view's first element. */
function viewBytes(memory: SharedBytes, address: number, { dtype, shape, strides }: View): ViewBytes {
  const { bytes: size } = dtypes[dtype];
  const length = size * elementCount(shape);
  const packed = contiguousStrides(shape);
  const isPacked = shape.every((extent, axis) => extent === 1 || strides[axis] === packed[axis]);
  if (length === 0 || isPacked) {
    return { bytes: memory.subarray(address, address + length), pack: () => {}, unpack: () => {} };
  }
  const bytes = createSharedBytes(length);
  // The innermost axes that lie side by side are one run.
  let inner = shape.length;
  while (inner > 0 && (at(shape, inner - 1) === 1 || strides[inner - 1] === packed[inner - 1])) inner--;
  const run = size * elementCount(shape.slice(inner));
  const eachRun = (visit: (inMemory: number, inBytes: number) => void): void => {
    let next = 0;
    const walk = (axis: number, start: number): void => {
      if (axis === inner) {
        visit(start, next);
        next += run;
        return;
      }
      for (let i = 0; i < at(shape, axis); i++) walk(axis + 1, start + i * size * at(strides, axis));
    };
    walk(0, address);
  };
  return {
    bytes,
    pack: () => eachRun((from, to) => bytes.set(memory.subarray(from, from + run), to)),
    unpack: () => eachRun((to, from) => memory.set(bytes.subarray(from, from + run), to)),
  };
}
