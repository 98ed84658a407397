/**
 * Splits a Program into Programs of its regions. A part has the commands of one region, and numbers kernels and transfers
 * anew. Buffers, slots, streams and events keep their numbers. A temporary that several regions use is an output of each
 * part, so that no rewrite leaves out what another region reads.
 *
 * A part does not wait for events of earlier regions: `joinParts` orders whole regions.
 */
import type { BufferId } from "../../commands/buffer.ts";
import type { Command, EventId, KernelId, TransferId } from "../../commands/command.ts";
import type { LinkedTransfer, Program, RankProgram } from "../../commands/program.ts";
import { makeId } from "../../support/ids.ts";
import { at, invariant } from "../../support/invariant.ts";

export interface ProgramPart {
  readonly program: Program;
  /** By TransferId of the part: the transfer of the whole. */
  readonly transfers: readonly TransferId[];
}

/** By region and rank: the number of top-level statements up to the region's end. The last region has all the rest. */
export type RegionEnds = readonly (readonly number[])[];

export function splitByRegion(program: Program, ends: RegionEnds): readonly ProgramPart[] {
  const bounds = program.ranks.map((list) => boundsOf(list, ends));
  const shared = sharedTemporaries(program, bounds);
  const buffers = program.buffers.map((buffer) =>
    shared.has(buffer.id) ? { ...buffer, role: "output" as const } : buffer,
  );
  const transfers = ends.map((): LinkedTransfer[] => []);
  for (const transfer of program.transfers) {
    const [first] = transfer.participants;
    if (first === undefined) continue;
    const region = at(bounds, first.rank).findIndex((end) => first.command < end);
    at(transfers, region).push(transfer);
  }
  return ends.map((_, region) => partOf(program, buffers, bounds, region, at(transfers, region)));
}

/** By region: the position after its last command in the rank's list. */
function boundsOf({ origins, rank }: RankProgram, ends: RegionEnds): readonly number[] {
  let position = 0;
  return ends.map((byRank, region) => {
    const end = region === ends.length - 1 ? Infinity : at(byRank, rank);
    while (position < origins.length && (at(origins, position).path[0] ?? 0) < end) position++;
    return position;
  });
}

/** Temporaries of which commands of several regions access some bytes. */
function sharedTemporaries(program: Program, bounds: readonly (readonly number[])[]): ReadonlySet<BufferId> {
  const regionOf = new Map<BufferId, number>();
  const shared = new Set<BufferId>();
  for (const { rank, commands } of program.ranks) {
    let region = 0;
    for (const [position, command] of commands.entries()) {
      while (position >= at(at(bounds, rank), region)) region++;
      if (command.kind === "alloc" || command.kind === "free") continue;
      for (const buffer of buffersOf(command)) {
        const known = regionOf.get(buffer);
        if (known === undefined) regionOf.set(buffer, region);
        else if (known !== region && at(program.buffers, buffer).role === "temporary") shared.add(buffer);
      }
    }
  }
  return shared;
}

function partOf(
  program: Program,
  buffers: Program["buffers"],
  bounds: readonly (readonly number[])[],
  region: number,
  transfers: readonly LinkedTransfer[],
): ProgramPart {
  const idOf = new Map(transfers.map(({ id }, index) => [id, makeId<TransferId>(index)]));
  const kernels: Program["kernels"][number][] = [];
  const kernelIds = new Map<KernelId, KernelId>();
  const kernelOf = (id: KernelId): KernelId => {
    const known = kernelIds.get(id) ?? makeId<KernelId>(kernels.push(at(program.kernels, id)) - 1);
    kernelIds.set(id, known);
    return known;
  };
  const startOf = (rank: number): number => (region === 0 ? 0 : at(at(bounds, rank), region - 1));
  /** By rank: the new position of each command. */
  const positions = program.ranks.map(() => new Map<number, number>());
  const ranks = program.ranks.map((list): RankProgram => {
    const [start, end] = [startOf(list.rank), at(at(bounds, list.rank), region)];
    const recorded = new Set<EventId>();
    const kept: number[] = [];
    for (let position = start; position < end; position++) {
      const command = at(list.commands, position);
      if (command.kind === "recordEvent") recorded.add(command.event);
      if (command.kind === "waitEvent" && !recorded.has(command.event)) continue;
      at(positions, list.rank).set(position, kept.length);
      kept.push(position);
    }
    return {
      ...list,
      commands: kept.map((position): Command => {
        const command = at(list.commands, position);
        return command.kind === "launch" ? { ...command, kernel: kernelOf(command.kernel) } : command;
      }),
      origins: kept.map((position) => at(list.origins, position)),
      transferOf: kept.map((position) => {
        const transfer = list.transferOf[position] ?? null;
        return transfer === null ? null : (idOf.get(transfer) ?? null);
      }),
    };
  });
  const own = transfers.map((transfer, index): LinkedTransfer => {
    const id = makeId<TransferId>(index);
    const participants = transfer.participants.map((participant) => {
      const command = at(positions, participant.rank).get(participant.command);
      invariant(command !== undefined, "all participants of a transfer are in one region", participant);
      return { ...participant, command };
    });
    return { ...transfer, id, participants };
  });
  return { program: { ...program, ranks, buffers, kernels, transfers: own }, transfers: transfers.map(({ id }) => id) };
}

/** The buffers that a command reads or writes. */
function buffersOf(command: Command): readonly BufferId[] {
  switch (command.kind) {
    case "launch":
      return [...command.inputs, ...command.outputs].map(({ buffer }) => buffer);
    case "copy":
      return [command.source.buffer, command.destination.buffer];
    case "transfer": {
      const { operation } = command;
      if (operation.kind === "group") return operation.ops.map(({ view }) => view.buffer);
      return [operation.input, operation.output].flatMap((view) => (view === null ? [] : [view.buffer]));
    }
    default:
      return [];
  }
}
