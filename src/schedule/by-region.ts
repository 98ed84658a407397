/**
 * Rewrites the commands of each region of a Program by the region's schedule, in a Program that lacks the commands of
 * the others. What regions have in common is settled in the whole: streams of one role and name are one stream, rewrites
 * of different regions share temporary memory, and events order only what must be.
 */
import { createAddedKernels } from "../commands/additions.ts";
import type { BufferId } from "../commands/buffer.ts";
import type { Command, CommandStreamId, EventId, KernelId, Origin, StreamInfo } from "../commands/command.ts";
import type { Kernel } from "../commands/kernel.ts";
import { createListWriter, type ListWriter, movedTransfer } from "../commands/list-writer.ts";
import type { Program, RankProgram } from "../commands/program.ts";
import { accesses } from "../commands/region.ts";
import { sameNumbers } from "../commands/view.ts";
import { makeId, at, getOrMake } from "../support/invariant.ts";
import { createDraftReader } from "./draft/draft-reader.ts";
import { rewriteAnew } from "./draft/edit-ranks.ts";
import { createEqualParts } from "./equal-parts.ts";
import { useInPlace } from "./rewrites/use-in-place.ts";
import { applySchedule, type ScheduleOptions } from "./schedule.ts";

/**
 * `schedules`: by region. Regions are in order in every list. `apart`: they stay as they are, with all streams in order
 * between two of them; otherwise `acrossRegions` follows. `equal`: what was rewritten before.
 */
export function applyByRegion(
  program: Program,
  schedules: readonly ScheduleOptions[],
  apart = false,
  equal = createEqualParts(),
): Program {
  const reader = createDraftReader();
  const group = reader.symmetry(program);
  const positions = program.ranks.map(({ origins }) => {
    const own = schedules.map((): number[] => []);
    for (const [position, { region = 0 }] of origins.entries()) at(own, region).push(position);
    return own;
  });
  // What maps the whole to itself maps each region, if regions end at the same commands.
  let isAlike =
    group !== null &&
    positions.every((own, rank) =>
      own.every((each, region) => sameNumbers(each, at(at(positions, at(group.representative, rank)), region))),
    );
  const parts = { ...program, buffers: withShared(program) };
  const { kernels, kernelId } = createAddedKernels([], (kernel) => JSON.stringify(kernel));
  const known = new Map<Kernel, KernelId>();
  const transfers = [...program.transfers];
  const others = transfers.map((transfer) => ({ ...transfer, participants: [] }));
  const lists = program.ranks.map(beginList);
  let { slots } = program;
  for (const [region, schedule] of schedules.entries()) {
    const part = partOf(
      parts,
      positions.map((own) => at(own, region)),
      others,
    );
    if (isAlike && group !== null) reader.keepSymmetry(part, group);
    const options = JSON.stringify(schedule);
    const found = equal.find(part, options);
    const made = found?.made ?? applySchedule(part, schedule, reader);
    if (found === null) equal.keep(part, options, made);
    isAlike &&= reader.symmetry(found?.like ?? made) === group;
    // Slots are dropped only where all of them are of one region.
    if (made.slots !== program.slots) ({ slots } = made);
    const kernelOf = (id: KernelId): KernelId => {
      const kernel = at(made.kernels, id);
      return getOrMake(known, kernel, () => kernelId(kernel));
    };
    const starts = made.ranks.map((list, rank) => append(at(lists, rank), list, kernelOf));
    for (const transfer of made.transfers)
      if (transfer.participants.length > 0)
        transfers[transfer.id] = movedTransfer(transfer, (rank, position) => at(starts, rank) + position);
  }
  const ranks = program.ranks.map((before, rank) => {
    const { list, streams, eventCount } = at(lists, rank);
    return { ...before, ...list, streams, eventCount };
  });
  const joined = { ...program, ranks, kernels, transfers, slots };
  if (isAlike && group !== null) reader.keepSymmetry(joined, group);
  return apart ? joined : acrossRegions(joined, schedules, reader);
}

/**
 * The lists of regions that are apart, written anew as one list: fewer events and streams order more. Copies between
 * regions go, if `inPlaceEverywhere`; if none does, the Program stays as it is.
 */
export function acrossRegions(
  apart: Program,
  schedules: readonly ScheduleOptions[],
  reader = createDraftReader(),
): Program {
  return inPlaceEverywhere(schedules) ? useInPlace.run(apart, true, reader) : rewriteAnew(apart, reader);
}

/** Whether copies between regions may go, too: all regions whose GEMMs have streams of their own do without copies. */
function inPlaceEverywhere(schedules: readonly ScheduleOptions[]): boolean {
  const asked = schedules.filter(({ computeStreams }) => computeStreams !== undefined);
  return asked.length > 0 && asked.every(({ inPlace }) => inPlace === true);
}

/** A temporary that several regions use is an output, so that no rewrite leaves out what another region reads. */
function withShared(program: Program): Program["buffers"] {
  const regionOf = new Map<BufferId, number>();
  const shared = new Set<BufferId>();
  for (const { rank, commands, origins } of program.ranks) {
    for (const [position, { kind }] of commands.entries()) {
      if (kind === "alloc" || kind === "free") continue;
      const { region = 0 } = at(origins, position);
      const { reads, writes } = accesses(program, rank, position);
      for (const { buffer } of [...reads, ...writes]) {
        if ((regionOf.get(buffer) ?? region) !== region) shared.add(buffer);
        regionOf.set(buffer, region);
      }
    }
  }
  return program.buffers.map((buffer) =>
    buffer.role === "temporary" && shared.has(buffer.id) ? { ...buffer, role: "output" as const } : buffer,
  );
}

/**
 * The Program with the commands at these positions alone. They do not wait for events of other regions. `others`: the
 * transfers of other regions.
 */
function partOf(program: Program, positions: readonly (readonly number[])[], others: Program["transfers"]): Program {
  const places = program.ranks.map(() => new Map<number, number>());
  const ranks = program.ranks.map((list, rank): RankProgram => {
    const recorded = new Set<EventId>();
    const { list: own, add } = createListWriter();
    for (const position of at(positions, rank)) {
      const command = at(list.commands, position);
      if (command.kind === "recordEvent") recorded.add(command.event);
      if (command.kind === "waitEvent" && !recorded.has(command.event)) continue;
      at(places, rank).set(position, own.commands.length);
      add(command, at(list.origins, position), list.transferOf[position]);
    }
    return { ...list, ...own };
  });
  const transfers = [...others];
  for (const id of new Set(ranks.flatMap(({ transferOf }) => transferOf.filter((each) => each !== null)))) {
    const transfer = at(program.transfers, id);
    if (transfer.participants.every(({ rank, command }) => at(places, rank).has(command)))
      transfers[id] = movedTransfer(transfer, (rank, position) => at(places, rank).get(position) ?? position);
  }
  return { ...program, ranks, transfers };
}

interface JoinedList extends ListWriter {
  readonly streams: StreamInfo[];
  eventCount: number;
}

const caller = makeId<CommandStreamId>(0);

function beginList(): JoinedList {
  const streams: StreamInfo[] = [{ id: caller, role: "caller", name: "caller" }];
  return { ...createListWriter(), streams, eventCount: 0 };
}

/**
 * Appends a region, and returns the position of its first command. The caller's stream waits for all streams between two
 * regions, so that the joined lists complete on one queue if those of the regions do.
 */
function append(list: JoinedList, part: RankProgram, kernelOf: (id: KernelId) => KernelId): number {
  const own = part.streams.map(({ role, name }): CommandStreamId => {
    const known = list.streams.find((other) => other.role === role && other.name === name);
    const id = known?.id ?? makeId<CommandStreamId>(list.streams.length);
    if (known === undefined) list.streams.push({ id, role, name });
    return id;
  });
  const { add } = list;
  const order = (earlier: CommandStreamId, later: CommandStreamId, origin: Origin | undefined): void => {
    if (origin === undefined) return;
    const event = makeId<EventId>(list.eventCount++);
    add({ kind: "recordEvent", stream: earlier, event }, origin);
    add({ kind: "waitEvent", stream: later, event }, origin);
  };
  const used = [...new Set(part.commands.map(({ stream }) => at(own, stream)))].filter((id) => id !== caller);
  for (const stream of used) order(caller, stream, part.origins[0]);
  const start = list.list.commands.length;
  const events = new Map<EventId, EventId>();
  for (const [position, command] of part.commands.entries()) {
    // Operands stay the same objects, by which the accesses are known.
    const moved: Command = { ...command, stream: at(own, command.stream) };
    const numbered: Command =
      moved.kind === "launch"
        ? { ...moved, kernel: kernelOf(moved.kernel) }
        : moved.kind === "recordEvent" || moved.kind === "waitEvent"
          ? { ...moved, event: getOrMake(events, moved.event, () => makeId<EventId>(list.eventCount++)) }
          : moved;
    add(numbered, at(part.origins, position), at(part.transferOf, position));
  }
  for (const stream of used) order(stream, caller, part.origins.at(-1));
  return start;
}
