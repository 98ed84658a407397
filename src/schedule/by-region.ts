/**
 * Rewrites the regions of a Program, each by its own schedule: splits the Program into one for each region, rewrites
 * those, and joins them again. What regions have in common is settled in the joined Program: streams of one role and
 * name are one stream, rewrites of different regions share temporary memory, and events order only what must be.
 */
import type { BufferId, BufferRef } from "../commands/buffer.ts";
import type {
  Command,
  CommandStreamId,
  EventId,
  KernelId,
  Origin,
  StreamInfo,
  TransferId,
} from "../commands/command.ts";
import type { Kernel } from "../commands/kernel.ts";
import type { LinkedTransfer, Participant, Program, RankProgram } from "../commands/program.ts";
import type { View } from "../commands/view.ts";
import { makeId } from "../support/ids.ts";
import { at } from "../support/invariant.ts";
import { createDraftReader } from "./draft/draft-reader.ts";
import { rewriteAnew } from "./draft/edit-ranks.ts";
import { type ProgramPart, splitByRegion } from "./regions/split-program.ts";
import { useInPlace } from "./rewrites/use-in-place.ts";
import { applySchedule, type ScheduleOptions } from "./schedule.ts";

/** A region of a Program and its schedule. */
export interface RegionSchedule {
  /** By rank: the number of top-level statements of the host program up to the region's end. */
  readonly ends: readonly number[];
  readonly schedule: ScheduleOptions;
}

/** The regions are in order, and the last one has all remaining commands. */
export function applyByRegion(program: Program, regions: readonly RegionSchedule[]): Program {
  const reader = createDraftReader();
  const group = reader.symmetry(program);
  const isAlike = (part: Program): boolean => group !== null && reader.symmetry(part) === group;
  const parts = splitByRegion(
    program,
    regions.map(({ ends }) => ends),
  );
  // What maps the whole to itself maps each part, if regions end at the same statements.
  if (
    group !== null &&
    regions.every(({ ends }) => ends.every((end, rank) => end === ends[at(group.representative, rank)]))
  )
    for (const part of parts) reader.keepSymmetry(part.program, group);
  const rewritten = parts.map((part, region) => ({
    ...part,
    program: applySchedule(part.program, regions[region]?.schedule ?? {}, reader),
  }));
  const joined = joinParts(program, rewritten);
  if (group !== null && rewritten.every((part) => isAlike(part.program))) reader.keepSymmetry(joined, group);
  return inPlaceEverywhere(regions) ? useInPlace.run(joined, true, reader) : rewriteAnew(joined, reader);
}

/** Whether copies between regions may go, too: all regions whose GEMMs have streams of their own do without copies. */
function inPlaceEverywhere(regions: readonly RegionSchedule[]): boolean {
  const asked = regions.filter(({ schedule: { computeStreams } }) => computeStreams !== undefined);
  return asked.length > 0 && asked.every(({ schedule: { inPlace } }) => inPlace === true);
}

// Joins the rewritten Programs of regions. The caller's stream waits for all streams between two regions, so that the
// joined lists complete on one queue if those of the parts do.

/** `whole`: the Program that was split into the parts, before they were rewritten. */
function joinParts(whole: Program, parts: readonly ProgramPart[]): Program {
  const kernels = joinKernels(parts);
  const buffers = joinBuffers(whole, parts);
  const joined = whole.ranks.map(({ rank }) => joinRank(rank, parts, kernels.ids, buffers.ids));
  const transfers: LinkedTransfer[] = [...whole.transfers];
  for (const [i, part] of parts.entries()) {
    for (const transfer of part.program.transfers) {
      const id = at(part.transfers, transfer.id);
      const participants = transfer.participants.map((participant): Participant => ({
        ...participant,
        command: at(at(joined, participant.rank).positions, i)(participant.command),
      }));
      transfers[id] = { ...transfer, id, participants };
    }
  }
  const ranks = whole.ranks.map((list, rank): RankProgram => {
    const temporary = Math.max(...parts.map(({ program }) => at(program.ranks, rank).arenaBytes.temporary));
    return { ...list, ...at(joined, rank).list, arenaBytes: { ...list.arenaBytes, temporary } };
  });
  return { ...whole, ranks, kernels: kernels.all, buffers: buffers.all, transfers };
}

interface Joined<Row, Id> {
  readonly all: readonly Row[];
  /** By part: the joined id of an id of the part. */
  readonly ids: readonly ((id: Id) => Id)[];
}

function joinKernels(parts: readonly ProgramPart[]): Joined<Kernel, KernelId> {
  const all: Kernel[] = [];
  const known = new Map<string, KernelId>();
  const ids = parts.map(({ program }) => {
    const own = program.kernels.map((kernel) => {
      const key = JSON.stringify(kernel);
      const id = known.get(key) ?? makeId<KernelId>(all.push(kernel) - 1);
      known.set(key, id);
      return id;
    });
    return (id: KernelId): KernelId => at(own, id);
  });
  return { all, ids };
}

/** The buffers of the whole, then those that each part has added. */
function joinBuffers(
  { buffers }: Program,
  parts: readonly ProgramPart[],
): Joined<Program["buffers"][number], BufferId> {
  const all = [...buffers];
  const ids = parts.map(({ program }) => {
    const shift = all.length - buffers.length;
    for (const added of program.buffers.slice(buffers.length)) all.push({ ...added, id: makeId(all.length) });
    return (id: BufferId): BufferId => (id < buffers.length ? id : makeId<BufferId>(id + shift));
  });
  return { all, ids };
}

interface JoinedRank {
  readonly list: Pick<RankProgram, "streams" | "eventCount" | "commands" | "origins" | "transferOf">;
  /** By part: the new position of a command. */
  readonly positions: readonly ((position: number) => number)[];
}

function joinRank(
  rank: number,
  parts: readonly ProgramPart[],
  kernelIds: Joined<Kernel, KernelId>["ids"],
  bufferIds: Joined<Program["buffers"][number], BufferId>["ids"],
): JoinedRank {
  const streams: StreamInfo[] = [];
  const streamIds = new Map<string, CommandStreamId>();
  const streamOf = ({ role, name }: StreamInfo): CommandStreamId => {
    const key = `${role} ${name}`;
    const id =
      streamIds.get(key) ?? makeId<CommandStreamId>(streams.push({ id: makeId(streams.length), role, name }) - 1);
    streamIds.set(key, id);
    return id;
  };
  const caller = streamOf({ id: makeId(0), role: "caller", name: "caller" });
  const commands: Command[] = [];
  const origins: Origin[] = [];
  const transferOf: (TransferId | null)[] = [];
  let eventCount = 0;
  const add = (command: Command, origin: Origin, transfer: TransferId | null = null): void => {
    commands.push(command);
    origins.push(origin);
    transferOf.push(transfer);
  };
  const order = (earlier: CommandStreamId, later: CommandStreamId, origin: Origin): void => {
    const event = makeId<EventId>(eventCount++);
    add({ kind: "recordEvent", stream: earlier, event }, origin);
    add({ kind: "waitEvent", stream: later, event }, origin);
  };
  const positions = parts.map(({ program, transfers }, i) => {
    const list = at(program.ranks, rank);
    const [first, last] = [list.origins[0], list.origins.at(-1)];
    const own = list.streams.map(streamOf);
    const used = [...new Set(list.commands.map(({ stream }) => at(own, stream)))].filter((id) => id !== caller);
    if (first !== undefined) for (const stream of used) order(caller, stream, first);
    const [start, firstEvent] = [commands.length, eventCount];
    const ids: Ids = {
      stream: (id) => at(own, id),
      event: (id) => makeId<EventId>(firstEvent + id),
      kernel: at(kernelIds, i),
      buffer: at(bufferIds, i),
    };
    for (const [position, command] of list.commands.entries()) {
      const transfer = list.transferOf[position] ?? null;
      add(renumbered(command, ids), at(list.origins, position), transfer === null ? null : at(transfers, transfer));
    }
    eventCount += list.eventCount;
    if (last !== undefined) for (const stream of used) order(stream, caller, last);
    return (position: number): number => start + position;
  });
  return { list: { streams, eventCount, commands, origins, transferOf }, positions };
}

interface Ids {
  readonly stream: (id: CommandStreamId) => CommandStreamId;
  readonly event: (id: EventId) => EventId;
  readonly kernel: (id: KernelId) => KernelId;
  readonly buffer: (id: BufferId) => BufferId;
}

function renumbered(command: Command, ids: Ids): Command {
  const stream = ids.stream(command.stream);
  // What stays is the same object, by which its accesses are known.
  const moved = <T extends { readonly buffer: BufferId }>(ref: T): T => {
    const buffer = ids.buffer(ref.buffer);
    return buffer === ref.buffer ? ref : { ...ref, buffer };
  };
  const allMoved = (refs: readonly BufferRef[]): readonly BufferRef[] => {
    const all = refs.map(moved);
    return all.every((ref, i) => ref === refs[i]) ? refs : all;
  };
  switch (command.kind) {
    case "launch": {
      const { kernel, inputs, outputs } = command;
      return { ...command, stream, kernel: ids.kernel(kernel), inputs: allMoved(inputs), outputs: allMoved(outputs) };
    }
    case "copy":
      return { ...command, stream, source: moved<View>(command.source), destination: moved<View>(command.destination) };
    case "recordEvent":
    case "waitEvent":
      return { ...command, stream, event: ids.event(command.event) };
    case "alloc":
    case "free":
      return { ...command, stream, buffer: ids.buffer(command.buffer) };
    default:
      return { ...command, stream };
  }
}
