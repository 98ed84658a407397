/**
 * One rank's device operations, bound: the actions in issue order, the streams and events they hold, and what tells how
 * far a run is.
 */
import { at } from "../../../support/invariant.ts";
import { type FlightStanding, reportedStanding } from "../../../trace/flight/flight-record.ts";
import { postFlight } from "../../../trace/flight/flight-words.ts";
import type { Flight } from "../../flight/flight-recorder.ts";
import type { Flights } from "../../flight/program-flights.ts";
import type { PlannedAttention } from "../attention/attentions.ts";
import { type Action, type Binding, bindOp } from "../bind/bind-op.ts";
import { type Arenas, bindStreams } from "../bind/spaces.ts";
import { failedAt } from "../bindings/call-error.ts";
import { createHostBlocks } from "../memory/host-blocks.ts";
import type { NcclCommunicator } from "../nccl/communicators.ts";
import type { DeviceAttention, DeviceOp, DeviceOps } from "../ops/device-op.ts";
import { commandPlace, type ListNotes } from "../ops/list-notes.ts";
import type { Resources } from "../resources.ts";
import type { Session } from "../session.ts";
import { createProgress, type StreamProgress } from "./stuck/progress.ts";
import { createSlotReader, type SlotReader } from "./stuck/slot-reader.ts";
import { type Deadline, waitUntil } from "./stuck/wait.ts";

/** What a rank prepares. */
export interface DeviceList {
  readonly ops: DeviceOps;
  /** The same work without joined commands, for traced runs. */
  readonly unjoined: () => DeviceOps;
  readonly notes: ListNotes;
}

export interface BoundOp {
  readonly op: DeviceOp;
  readonly action: Action;
}

/** A recordEvent: its event is a handle. */
export interface PreparedRecord {
  readonly stream: number;
  readonly command: number;
  readonly event: number;
}

/** A wait for a signal: the address of its word. */
export interface PreparedWait {
  readonly word: number;
  readonly command: number;
}

export interface PreparedList {
  /** In issue order. */
  readonly actions: readonly Action[];
  /** commandOf[i] is the command of actions[i]; -1 for edges that the planner adds. */
  readonly commandOf: Int32Array;
  /** The operations of a traced run; bound when they are asked for. */
  readonly unjoined: () => readonly BoundOp[];
  readonly records: readonly PreparedRecord[];
  readonly progress: StreamProgress;
  /** Runs of several waits that form one batch, keyed by the first command of each, which the stream reports. */
  readonly waitRuns: ReadonlyMap<number, readonly PreparedWait[]>;
  readonly slots: SlotReader;
  /** Handles, by number. */
  readonly streams: readonly number[];
  readonly flight: Flight;
  /** Set by an action that NCCL continues in the background. The next action must wait for it. */
  readonly busy: { communicator: NcclCommunicator | null };
}

export function prepareList(
  session: Session,
  { ops: list, unjoined, notes }: DeviceList,
  arenas: Arenas,
  communicators: ReadonlyMap<string, NcclCommunicator>,
  resources: Resources,
): PreparedList {
  const { gpu, pool } = session;
  const blocks = resources.own(createHostBlocks(gpu));
  const streams = list.streams.map(({ priority }) => pool.stream(priority, resources));
  const events = Array.from({ length: list.events }, () => pool.event("order", resources));
  const progress = createProgress(streams.length, blocks);
  const standings = (): readonly FlightStanding[] => streams.map((_, id) => reportedStanding(progress.last(id)));
  const flight = session.flight.open(flightsOf(notes), [list.rank], standings, progress.words);
  resources.defer(flight.release);
  const busy: PreparedList["busy"] = { communicator: null };
  const attentionOf = (attention: DeviceAttention, stream: number): PlannedAttention =>
    session.attentions().plan(attention, at(streams, stream));
  const addressOf = bindStreams(
    list.memory,
    workspaceBytes(list, attentionOf),
    arenas,
    progress,
    session.memory,
    resources,
  );
  const binding: Binding = {
    session,
    list,
    addressOf,
    blocks,
    resources,
    streams,
    events,
    attentionOf,
    communicators,
    inProgress: (communicator) => {
      busy.communicator = communicator;
    },
  };
  const actions = list.ops.map((op) => bindOp(op, binding));
  return {
    actions,
    commandOf: Int32Array.from(list.ops, ({ command }) => command),
    unjoined: () => {
      const alone = unjoined();
      return alone.ops.map((op) => ({ op, action: bindOp(op, { ...binding, list: alone }) }));
    },
    records: list.ops.flatMap((op) =>
      op.kind === "record" && op.command >= 0 ? [{ ...op, event: at(events, op.event) }] : [],
    ),
    progress,
    waitRuns: new Map(
      list.waitRuns.map((run) => [
        at(run, 0).command,
        run.map(({ word, command }) => ({ word: addressOf(word), command })),
      ]),
    ),
    slots: createSlotReader(gpu, session.slotStream, arenas.ownSlots, blocks),
    streams,
    flight,
    busy,
  };
}

/** By stream: what cuBLASLt needs, or cuDNN, whose plans know. */
function workspaceBytes(
  { ops, memory, attentions }: DeviceOps,
  attentionOf: (attention: DeviceAttention, stream: number) => PlannedAttention,
): readonly number[] {
  const bytes = [...memory.workspaceBytes];
  for (const op of ops) {
    if (op.kind !== "attention") continue;
    bytes[op.stream] = Math.max(
      at(bytes, op.stream),
      attentionOf(at(attentions, op.attention), op.stream).workspaceBytes,
    );
  }
  return bytes;
}

function flightsOf({ world, commandCount, flight }: ListNotes): Flights {
  return { world, planOf: flight, commandsOf: () => commandCount };
}

// Issues a prepared list in order. An error names the command it belongs to.

export interface Enqueued {
  readonly actions: readonly Action[];
  /** commandOf[i] is the command of actions[i]. */
  readonly commandOf: Int32Array;
  readonly flight: Pick<Flight, "words">;
  /** Whether the last action left NCCL working in the background; checked after each action. */
  readonly busy: { communicator: NcclCommunicator | null };
}

/** Resolves when everything is with the driver. Waits only where NCCL continues a call in the background. */
export async function enqueueList(
  session: Session,
  notes: ListNotes,
  list: Enqueued,
  deadline: Deadline,
): Promise<void> {
  const { busy } = list;
  for (let next = 0; next < list.actions.length;) {
    next = runActions(notes, list, next);
    const { communicator } = busy;
    busy.communicator = null;
    if (communicator !== null) await waitUntil(() => !session.communicators().isBusy(communicator), deadline);
  }
  // Joined actions have the number of their first command.
  postFlight(at(list.flight.words, 0), notes.commandCount);
}

/** Runs actions from `first` up to and including one that leaves NCCL busy. Returns the number of the next action. */
function runActions(notes: ListNotes, { actions, commandOf, busy, flight }: Enqueued, first: number): number {
  const words = at(flight.words, 0);
  let i = first;
  try {
    while (i < actions.length && busy.communicator === null) {
      actions[i]?.();
      const command = commandOf[i] ?? -1;
      if (command >= 0) postFlight(words, command + 1);
      i++;
    }
    return i;
  } catch (error) {
    throw failedAt(error, commandPlace(notes, commandOf[i] ?? -1));
  }
}
