/**
 * One rank's prepared list: its actions in order, each with its command; the streams and events it holds; and the edges
 * that let the host wait for stream 0 only.
 */
import { type Command, type CommandStreamId, type EventId, isBlocking } from "../../../commands/command.ts";
import type { Program } from "../../../commands/program.ts";
import { makeId } from "../../../support/ids.ts";
import { at } from "../../../support/invariant.ts";
import { type FlightStanding, reportedStanding } from "../../../trace/flight/flight-record.ts";
import type { Flight } from "../../flight/flight-recorder.ts";
import type { Arenas } from "../memory/arenas.ts";
import { createHostBlocks } from "../memory/host-blocks.ts";
import type { Communicator } from "../nccl/communicators.ts";
import type { Resources } from "../resources.ts";
import type { Session } from "../session.ts";
import type { Action, ActionContext } from "./actions/action-context.ts";
import { commandWork } from "./actions/command-actions.ts";
import { joinWork, type ListedWork, type StreamWork, workAction } from "./actions/join-work.ts";
import { type Wait, waitRuns } from "./actions/memory-operations.ts";
import { commandOf, createProgress, type Progress } from "./stuck/progress.ts";
import { createSlotReader, type SlotReader } from "./stuck/slot-reader.ts";
import { createStreamScratch, streamPriorities } from "./streams/stream-pool.ts";

/** A command that puts work on its stream. */
export interface PreparedCommand {
  readonly index: number;
  readonly stream: CommandStreamId;
  /** The command's actions, not joined with its neighbours'; made on demand. */
  readonly actions: () => readonly Action[];
}

export interface PreparedList {
  /** In issue order, forks first and joins last. */
  readonly actions: readonly Action[];
  /** commandOf[i] is the command of actions[i]; -1 for edges that the back end adds. */
  readonly commandOf: Int32Array;
  readonly forks: readonly Action[];
  readonly commands: readonly PreparedCommand[];
  readonly joins: readonly Action[];
  readonly progress: Progress;
  /** Runs of several waits that form one batch, keyed by the first command of each, which the stream reports. */
  readonly waitRuns: ReadonlyMap<number, readonly Wait[]>;
  readonly slots: SlotReader;
  /** Indexed by CommandStreamId. */
  readonly streams: readonly number[];
  /** Indexed by EventId. */
  readonly events: readonly number[];
  readonly flight: Flight;
  /** Set by an action that NCCL continues in the background. The next action must wait for it. */
  readonly busy: { communicator: Communicator | null };
}

export function prepareList(
  session: Session,
  program: Program,
  arenas: Arenas,
  communicators: ReadonlyMap<string, Communicator>,
  resources: Resources,
): PreparedList {
  const { gpu, pool } = session;
  const { rank } = gpu;
  const own = at(program.ranks, rank);
  const blocks = resources.own(createHostBlocks(gpu));
  const streams = streamPriorities(own.streams).map((priority) => pool.stream(priority, resources));
  const events = Array.from({ length: own.eventCount }, () => pool.event("order", resources));
  const progress = createProgress(streams.length, blocks);
  const standings = (): readonly FlightStanding[] => own.streams.map(({ id }) => reportedStanding(progress.last(id)));
  const flight = session.flight.open(program, [rank], standings, progress.words);
  resources.defer(flight.release);
  const busy: PreparedList["busy"] = { communicator: null };
  const scratchOf = createStreamScratch(session.memory, resources, "scratch of kernels");
  const workspaceOf = createStreamScratch(session.memory, resources, "workspaces of matmul and attention");
  const context: ActionContext = {
    session,
    program,
    rank,
    arenas,
    blocks,
    resources,
    progress,
    streamOf: (stream) => at(streams, stream),
    eventOf: (event) => at(events, event),
    scratchOf,
    workspaceOf,
    gateOf: arenas.gateAddress,
    steps: new Map(),
    communicators,
    inProgress: (communicator) => {
      busy.communicator = communicator;
    },
  };
  const works = own.commands.map((command, index) =>
    commandWork(index, context).map((work): ListedWork => ({
      stream: command.stream,
      index,
      work,
      isBlocking: isBlocking(command),
    })),
  );
  const action = ({ work, stream }: StreamWork): Action => workAction(work, stream, context);
  const commands = own.commands.flatMap(({ stream }, index): readonly PreparedCommand[] => {
    const work = at(works, index);
    return work.length === 0 ? [] : [{ index, stream, actions: () => work.map(action) }];
  });
  const edges = missingEdges(own.commands);
  const caller = makeId<CommandStreamId>(0);
  const edge = (from: CommandStreamId, to: readonly CommandStreamId[]): readonly Action[] => {
    if (to.length === 0) return [];
    const event = pool.event("order", resources);
    return [
      () => gpu.call.cuEventRecord(event, at(streams, from)),
      ...to.map((stream) => () => gpu.call.cuStreamWaitEvent(at(streams, stream), event, 0)),
    ];
  };
  const forks = edge(caller, edges.forks);
  const joins = edges.joins.flatMap((stream) => edge(stream, [caller]));
  const joined = joinWork(works.flat(), gpu.smCount);
  const inOrder = [
    ...forks.map((each) => ({ action: each, index: -1 })),
    ...joined.map((each) => ({ action: action(each), index: each.index })),
    ...joins.map((each) => ({ action: each, index: -1 })),
  ];
  return {
    actions: inOrder.map((each) => each.action),
    commandOf: Int32Array.from(inOrder, ({ index }) => index),
    forks,
    commands,
    joins,
    progress,
    waitRuns: runsByFirst(joined),
    slots: createSlotReader(gpu, session.slotStream, arenas.ownSlots, blocks),
    streams,
    events,
    flight,
    busy,
  };
}

function runsByFirst(joined: readonly StreamWork[]): PreparedList["waitRuns"] {
  const runs = joined.flatMap(({ work }) => (work.kind === "memory" ? waitRuns(work.operations) : []));
  return new Map(runs.flatMap((run) => (run.length > 1 ? [[commandOf(at(run, 0).says), run] as const] : [])));
}

/**
 * Finds streams of a list that do not start after stream 0's start, or do not end before its end. The back end adds
 * those edges. The host then waits for one stream, and the whole list can be captured into a graph from stream 0. A
 * verified program has no races without them.
 */
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
