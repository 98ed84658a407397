/**
 * The streams of one rank. Stream 0 is the caller's. A host stream with an index maps to the stream of that value.
 * Without an index it is a separate stream, or the stream that GetCurrentStream bound it to. Each communicator has a
 * stream.
 */
import type { CommandStreamId, EventId, StreamInfo } from "../commands/command.ts";
import type { StreamId } from "../host/nodes.ts";
import { makeId } from "../support/ids.ts";
import type { Communicator } from "./communicators.ts";
import { emit, nextEvent, type Tape } from "./tape.ts";

export interface Streams {
  readonly tape: Tape;
  readonly infos: StreamInfo[];
  readonly byIndex: Map<number, CommandStreamId>;
  readonly byNode: Map<StreamId, CommandStreamId>;
  readonly byCommunicator: Map<string, CommandStreamId>;
  readonly caller: CommandStreamId;
  current: CommandStreamId;
}

/** Starts with the caller's stream alone. */
export function createStreams(tape: Tape): Streams {
  const caller = makeId<CommandStreamId>(0);
  return {
    tape,
    infos: [{ id: caller, role: "caller", name: "caller" }],
    byIndex: new Map(),
    byNode: new Map(),
    byCommunicator: new Map(),
    caller,
    current: caller,
  };
}

/** The stream of an index value. */
export function indexedStream(streams: Streams, index: number): CommandStreamId {
  return lookUp(streams, streams.byIndex, index, "worker", `worker ${index}`);
}

/** The stream of a host stream without an index. */
export function nodeStream(streams: Streams, node: StreamId): CommandStreamId {
  return lookUp(streams, streams.byNode, node, "worker", `stream ${node}`);
}

/** The stream on which a library runs the transfers of one communicator. */
export function communicatorStream(streams: Streams, { name, role }: Communicator): CommandStreamId {
  return lookUp(streams, streams.byCommunicator, name, role, name);
}

function lookUp<Key>(
  { infos }: Streams,
  known: Map<Key, CommandStreamId>,
  key: Key,
  role: StreamInfo["role"],
  name: string,
): CommandStreamId {
  const found = known.get(key);
  if (found !== undefined) return found;
  const id = makeId<CommandStreamId>(infos.length);
  infos.push({ id, role, name });
  known.set(key, id);
  return id;
}

/** Orders the later work of `later` after the earlier work of `earlier`. Does nothing if they are the same stream. */
export function order({ tape }: Streams, earlier: CommandStreamId, later: CommandStreamId): void {
  if (earlier === later) return;
  waitFor(tape, recordOn(tape, earlier), later);
}

/** Records a new event on `stream`. */
export function recordOn(tape: Tape, stream: CommandStreamId): EventId {
  const event = nextEvent(tape);
  emit(tape, { kind: "recordEvent", stream, event });
  return event;
}

/** Makes `stream` wait for the event. */
export function waitFor(tape: Tape, event: EventId, stream: CommandStreamId): void {
  emit(tape, { kind: "waitEvent", stream, event });
}
