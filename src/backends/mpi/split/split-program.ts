/**
 * Splits a Program over processes. Each gets the commands of its ranks, in which all communication with other processes
 * is signals and waits; channels say which messages these stand for. Every process makes the same split, so that they
 * agree on slots and channels. What stays in one process does not change.
 */
import type { Command, Origin, TransferId } from "../../../commands/command.ts";
import type { Participant, Program, RankProgram } from "../../../commands/program.ts";
import { makeId } from "../../../support/ids.ts";
import { at } from "../../../support/invariant.ts";
import type { Channel } from "./channel.ts";
import { type GrowingProgram, growingProgram } from "./growing-program.ts";
import { splitCommand } from "./split-command.ts";
import { splitTransfer } from "./split-transfer.ts";

export interface SplitProgram {
  /** What one process runs: other ranks have no commands and no memory. Buffers of the whole Program keep their ids. */
  readonly programOf: (process: number) => Program;
  readonly channels: readonly Channel[];
  /** By rank and command: the command of the whole Program that it is part of. */
  readonly sources: readonly (readonly number[])[];
}

/** `processOf`: by rank, the process that holds it. */
export function splitProgram(program: Program, processOf: readonly number[]): SplitProgram {
  const growing = growingProgram(program, processOf);
  const staysWith = program.transfers.map(({ participants }) => {
    const processes = new Set(participants.map(({ rank }) => at(processOf, rank)));
    const [process] = processes;
    return processes.size === 1 && process !== undefined ? process : null;
  });
  const replaced = program.ranks.map(() => new Map<number, readonly Command[]>());
  for (const transfer of program.transfers) {
    if (staysWith[transfer.id] !== null) continue;
    const split = splitTransfer(growing, transfer);
    for (const [position, { rank, command }] of transfer.participants.entries()) {
      at(replaced, rank).set(command, at(split, position));
    }
  }
  addSignals(growing);
  const lists = program.ranks.map((rank) => listOf(growing, rank, at(replaced, rank.rank)));
  const { buffers, kernels, slots, channels, temporaryBytes } = growing;
  const programOf = (process: number): Program => {
    const kept = program.transfers.filter(({ id }) => staysWith[id] === process);
    const newId = new Map(kept.map(({ id }, i) => [id, makeId<TransferId>(i)]));
    const ranks = program.ranks.map((rank, i): RankProgram => {
      if (at(processOf, i) !== process) {
        return { ...rank, commands: [], origins: [], transferOf: [], eventCount: 0, arenaBytes: noBytes };
      }
      const { commands, origins, sources } = at(lists, i);
      const transferOf = commands.map((command, index) =>
        command.kind === "transfer" ? (newId.get(at(rank.transferOf, at(sources, index)) ?? makeId(-1)) ?? null) : null,
      );
      const arenaBytes = { ...rank.arenaBytes, temporary: temporaryBytes(i) };
      return { ...rank, commands, origins, transferOf, arenaBytes };
    });
    const place = ({ rank, command, operation }: Participant): Participant => ({
      rank,
      command: at(lists, rank).sources.indexOf(command),
      operation,
    });
    const transfers = kept.map((transfer, i) => ({
      ...transfer,
      id: makeId<TransferId>(i),
      participants: transfer.participants.map(place),
    }));
    return { ...program, buffers, kernels, slots, ranks, transfers };
  };
  return { programOf, channels, sources: lists.map(({ sources }) => sources) };
}

const noBytes = { input: 0, output: 0, temporary: 0, symmetric: 0 } as const;

interface List {
  readonly commands: readonly Command[];
  readonly origins: readonly Origin[];
  readonly sources: readonly number[];
}

function listOf(
  growing: GrowingProgram,
  { rank, commands, origins }: RankProgram,
  replaced: ReadonlyMap<number, readonly Command[]>,
): List {
  const parts = commands.map(
    (command, index) => replaced.get(index) ?? splitCommand(growing, rank, command) ?? [command],
  );
  return {
    commands: parts.flat(),
    origins: parts.flatMap((part, index) => part.map(() => at(origins, index))),
    sources: parts.flatMap((part, index) => part.map(() => index)),
  };
}

/** A channel for each slot whose two ranks are in different processes. */
function addSignals({ program, processOf, addChannel }: GrowingProgram): void {
  const counts = new Map<number, number>();
  for (const { commands } of program.ranks) {
    for (const command of commands) {
      if (command.kind === "signal") counts.set(command.slot, (counts.get(command.slot) ?? 0) + 1);
    }
  }
  for (const { id, signaller, waiter } of program.slots) {
    const [from, to] = [at(processOf, signaller), at(processOf, waiter)];
    if (from === to) continue;
    addChannel({ from, to, raise: id, count: counts.get(id) ?? 0, slots: [id] });
  }
}
