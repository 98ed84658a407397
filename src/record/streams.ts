/**
 * The streams of one rank. Stream 0 is the caller's. A host stream with an index maps to the stream of that value.
 * Without an index it is a separate stream, or the stream that GetCurrentStream bound it to. Each communicator has a
 * stream.
 */
import type { CommandStreamId, EventId, StreamInfo } from "../commands/command.ts";
import type { StreamId } from "../host/nodes.ts";
import { agreed } from "../host/alike/classes.ts";
import { makeId } from "../support/ids.ts";
import { at } from "../support/invariant.ts";
import type { Alike } from "./alike/alike.ts";
import type { Communicator } from "./communicators.ts";
import { emit, nextEvent, type Tape } from "./tape.ts";

export interface Streams {
  readonly tape: Tape;
  readonly infos: StreamInfo[];
  readonly byIndex: Map<number, CommandStreamId>;
  readonly byNode: Map<StreamId, CommandStreamId>;
  /** By name, on each rank that is recorded at once. */
  readonly byCommunicator: readonly Map<string, CommandStreamId>[];
  readonly alike: Alike | null;
  readonly caller: CommandStreamId;
  current: CommandStreamId;
}

/** Starts with the caller's stream alone. */
export function createStreams(tape: Tape, alike: Alike | null): Streams {
  const caller = makeId<CommandStreamId>(0);
  return {
    tape,
    infos: [{ id: caller, role: "caller", name: "caller" }],
    byIndex: new Map(),
    byNode: new Map(),
    byCommunicator: Array.from({ length: alike?.ranks.length ?? 1 }, () => new Map<string, CommandStreamId>()),
    alike,
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
export function communicatorStream(streams: Streams, { names, role }: Communicator): CommandStreamId {
  const { byCommunicator, infos, alike } = streams;
  const nameOn = (k: number): string => names[k] ?? at(names, 0);
  const known = agreed(byCommunicator.map((byName, k) => byName.get(nameOn(k)) ?? null));
  if (known !== null) return known;
  const id = makeId<CommandStreamId>(infos.length);
  infos.push({ id, role, name: nameOn(0) });
  for (const [k, byName] of byCommunicator.entries()) byName.set(nameOn(k), id);
  if (names.some((name) => name !== nameOn(0))) alike?.streamNames.set(id, names);
  return id;
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
