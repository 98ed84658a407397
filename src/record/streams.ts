/**
 * The streams of one rank. Stream 0 is the caller's. A host stream with an index maps to the stream of that value.
 * Without an index it is a separate stream, or the stream that GetCurrentStream bound it to. Each communicator has a
 * stream.
 */
import type { CommandStreamId, EventId, StreamInfo } from "../commands/command.ts";
import { agreed } from "../host/alike/classes.ts";
import type { CommunicatorBackend } from "../host/collectives.ts";
import type { StreamId } from "../host/nodes.ts";
import { makeId, at } from "../support/invariant.ts";
import type { Alike } from "./alike/alike.ts";
import type { Common } from "./common.ts";
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

export function recordOn(tape: Tape, stream: CommandStreamId): EventId {
  const event = nextEvent(tape);
  emit(tape, { kind: "recordEvent", stream, event });
  return event;
}

export function waitFor(tape: Tape, event: EventId, stream: CommandStreamId): void {
  emit(tape, { kind: "waitEvent", stream, event });
}

// Which of a library's communicators a transfer runs on. Each has a separate stream and sequence of transfers.
//
//   collectives, CollectivePermute       that of the team
//   coalesced sends and receives         that of all ranks
//   a single send or receive   team      the same; for SendRecv, that of the team
//                              pair      one of the two ranks alone, as in PyTorch's ProcessGroupNCCL
//
// With "pair", all ranks and the team of all ranks have one communicator, as in nvFuser. UCC has no pairs.

export type CommunicatorModel = "team" | "pair";

export interface Communicator {
  /** On each rank that is recorded at once: one, if it is the same on all. */
  readonly names: readonly string[];
  readonly role: Extract<StreamInfo["role"], "communicator" | "pair">;
}

/** The part of a recorder that names depend on. */
interface Naming {
  readonly options: {
    readonly communicators: CommunicatorModel;
    /** The number of ranks; null if unknown. */
    readonly devices: number | null;
  };
  /** The communicator of all ranks, by library. */
  readonly worlds: Map<CommunicatorBackend, Communicator>;
  readonly common: Common;
}

interface Sides {
  readonly backend: CommunicatorBackend;
  /** One for each rank that is recorded at once, or one for all. */
  readonly teams: readonly (readonly number[])[];
}

export function communicatorOf({ common }: Pick<Naming, "common">, { backend, teams }: Sides): Communicator {
  return { names: teams.map((team) => `${libraryOf(backend)} (${common.team(team)})`), role: "communicator" };
}

/** The communicator of all ranks. */
export function worldOf({ options, worlds, common }: Naming, backend: CommunicatorBackend): Communicator {
  const { communicators, devices } = options;
  if (communicators === "team" || devices === null)
    return { names: [`${libraryOf(backend)} world`], role: "communicator" };
  const known =
    worlds.get(backend) ??
    communicatorOf({ common }, { backend, teams: [Array.from({ length: devices }, (_, i) => i)] });
  worlds.set(backend, known);
  return known;
}

/** The communicator of a send or receive outside a group, between each rank and its peer. */
export function singleOf(
  recorder: Naming,
  backend: CommunicatorBackend,
  ranks: readonly number[],
  peers: readonly number[],
): Communicator {
  if (recorder.options.communicators === "team" || backend !== "nccl") return worldOf(recorder, backend);
  const names = ranks.map((rank, k) => {
    const peer = at(peers, k);
    return `NCCL pair (${Math.min(rank, peer)} ${Math.max(rank, peer)})`;
  });
  return { names, role: "pair" };
}

/** The communicator of a SendRecv. A team of two that is not all ranks has a pair of its own. */
export function sendRecvOf(recorder: Naming, sides: Sides): Communicator {
  const { communicators, devices } = recorder.options;
  const whole = communicatorOf(recorder, sides);
  if (communicators === "team" || sides.backend !== "nccl") return whole;
  if (devices === 2) return { names: ["NCCL pair (0 1)"], role: "pair" };
  return { names: whole.names.map((name) => `${name} pair`), role: "pair" };
}

function libraryOf(backend: CommunicatorBackend): string {
  return backend.toUpperCase();
}
