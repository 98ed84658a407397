/** The flight record of one rank, as it is written when a run fails, hangs or is asked. */
import { originText } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { shortStatement } from "../../commands/command-text.ts";
import { at, getOrMake } from "../../support/invariant.ts";
import { readFlight } from "./flight-words.ts";

export const flightFormat = "braid flight record 1";

export interface FlightRecord extends FlightPlan {
  readonly format: typeof flightFormat;
  readonly rank: number;
  /** The number of ranks. */
  readonly world: number;
  /** Why it was written. */
  readonly reason: string;
  /** Whether the run had failed on this rank or another; otherwise it went on. */
  readonly failed: boolean;
  /** The run in progress, or the last one, from 1. */
  readonly run: number;
  /** The last run that ended. */
  readonly finished: number;
  /** Commands of the list that were posted in this run. */
  readonly posted: number;
  /** By stream. */
  readonly reached: readonly FlightStanding[];
  /** By stream: the last commands that it has begun or ended, oldest first. */
  readonly last: readonly (readonly FlightMoment[])[];
}

/** The last command of this run that a stream is known to have begun, and to have ended; -1 for none. */
export interface FlightStanding {
  readonly begun: number;
  readonly ended: number;
  /** Whether the stream may be further: a GPU reports only transfers and runs of waits. */
  readonly orLater: boolean;
  /** Seconds before the record was written, of its last turn; null if the back end does not know. */
  readonly ago: number | null;
}

export interface FlightMoment {
  readonly step: "begun" | "ended";
  readonly command: number;
}

const mostMoments = 32;

/** What a stream of a GPU has reported in this run. */
export type Reported = { readonly command: number; readonly passed: boolean } | null;

export interface FlightSource {
  readonly rank: number;
  readonly world: number;
  readonly plan: FlightPlan;
  readonly words: Int32Array;
  /** By stream. */
  readonly standings: readonly FlightStanding[];
}

export function takeFlightRecord(
  { rank, world, plan, words, standings }: FlightSource,
  { reason, failed }: { readonly reason: string; readonly failed: boolean },
): FlightRecord {
  const { run, finished, posted } = readFlight(words);
  const last = standings.map((standing, stream) => momentsOf(plan, standing, stream, finished === run && run > 0));
  return {
    format: flightFormat,
    rank,
    world,
    reason,
    failed,
    run,
    finished,
    posted,
    reached: standings,
    last,
    ...plan,
  };
}

function momentsOf(
  { commands }: FlightPlan,
  { begun, ended }: FlightStanding,
  stream: number,
  isOver: boolean,
): readonly FlightMoment[] {
  const own = [...commands.keys()].filter((command) => at(commands, command).stream === stream);
  const reached = isOver ? own : own.filter((command) => command <= Math.max(begun, ended));
  return reached.slice(-mostMoments).map((command) => ({
    step: isOver || command <= ended || command < begun ? "ended" : "begun",
    command,
  }));
}

/** Where a stream of a GPU stands by what it has reported. */
export function reportedStanding(reported: Reported): FlightStanding {
  if (reported === null) return { begun: -1, ended: -1, orLater: true, ago: null };
  const { command, passed } = reported;
  return { begun: command, ended: passed ? command : -1, orLater: true, ago: null };
}

// What a rank's streams are to do, as a flight record keeps it: every command with its statement and the commands that
// it waits for. The record then explains itself without the Program.

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
    return getOrMake(statements, text, () => statements.size);
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
