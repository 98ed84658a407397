/**
 * What a rank's streams are to do, as a flight record keeps it: every command with its statement and the commands that
 * it waits for. The record then explains itself without the Program.
 */
import { originText } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { shortStatement } from "../../commands/short-statement.ts";
import { at } from "../../support/invariant.ts";

/** A rank and a position in its list; -1 for a command that no list has. */
export type FlightPlace = readonly [rank: number, command: number];

export interface PlannedCommand {
  readonly stream: number;
  readonly kind: string;
  /** A position in `statements`. */
  readonly statement: number;
  /** A transfer needs these to have begun, a wait needs them to have ended. */
  readonly needs?: readonly FlightPlace[];
}

export interface FlightPlan {
  /** Names by stream. */
  readonly streams: readonly string[];
  readonly statements: readonly string[];
  readonly commands: readonly PlannedCommand[];
}

/** The plans of a Program's ranks, each made when it is asked for. */
export function flightPlans(program: Program): (rank: number) => FlightPlan {
  let signals: Signals | null = null;
  return (rank) => planOf(program, rank, (signals ??= signalsOf(program)));
}

function planOf(program: Program, rank: number, signals: Signals): FlightPlan {
  const { streams, commands, origins } = at(program.ranks, rank);
  const statements = new Map<string, number>();
  const numberOf = (text: string): number => {
    const known = statements.get(text) ?? statements.size;
    statements.set(text, known);
    return known;
  };
  const needsOf = needsIn(program, rank, signals);
  const planned = commands.map(({ stream, kind }, index): PlannedCommand => {
    const needs = needsOf(index);
    const origin = at(origins, index);
    const statement = numberOf(originText({ ...origin, statement: shortStatement(origin.statement) }));
    return { stream, kind, statement, ...(needs.length === 0 ? {} : { needs }) };
  });
  return { streams: streams.map(({ name }) => name), statements: [...statements.keys()], commands: planned };
}

/** By slot: the commands that signal, in list order. */
type Signals = readonly (readonly FlightPlace[])[];

function signalsOf({ ranks, slots }: Program): Signals {
  const signals = slots.map((): FlightPlace[] => []);
  for (const { rank, commands } of ranks)
    for (const [index, command] of commands.entries())
      if (command.kind === "signal") at(signals, command.slot).push([rank, index]);
  return signals;
}

/** What the commands of a rank wait for, asked in list order. The n-th wait for a slot waits for its n-th signal. */
function needsIn(program: Program, rank: number, signals: Signals): (command: number) => readonly FlightPlace[] {
  const { commands, transferOf } = at(program.ranks, rank);
  const records = new Map(
    commands.flatMap((command, index) => (command.kind === "recordEvent" ? [[command.event, index] as const] : [])),
  );
  const waits = new Map<number, number>();
  return (index) => {
    const command = at(commands, index);
    if (command.kind === "waitEvent") {
      const record = records.get(command.event);
      return [[rank, record ?? -1]];
    }
    if (command.kind === "waitSignal") {
      const count = waits.get(command.slot) ?? 0;
      waits.set(command.slot, count + 1);
      return [at(signals, command.slot)[count] ?? [at(program.slots, command.slot).signaller, -1]];
    }
    const id = transferOf[index] ?? null;
    return id === null ? [] : peersIn(program, id, rank, index);
  };
}

/** All others of a collective, the direct peers in a group. */
function peersIn(program: Program, id: number, rank: number, command: number): readonly FlightPlace[] {
  const transfer = at(program.transfers, id);
  const { participants } = transfer;
  const own = participants.findIndex((each) => each.rank === rank && each.command === command);
  const peers =
    transfer.kind === "collective"
      ? [...participants.keys()].filter((peer) => peer !== own)
      : transfer.edges.flatMap(({ from, to }) => (from === own ? [to] : to === own ? [from] : []));
  return [...new Set(peers)]
    .filter((peer) => peer !== own)
    .map((peer): FlightPlace => [at(participants, peer).rank, at(participants, peer).command]);
}
