/**
 * The output of a recording: the commands, each with its origin, and the tables that they refer to. The origin is the
 * current statement, with the names of its tensors. Its text is printed once per statement, and all commands of one
 * visit share one Origin.
 */
import type { EventId, KernelId, Origin } from "../commands/command.ts";
import type { OneSided, PeerCollective, UnlinkedCommand } from "../commands/command-list.ts";
import type { Kernel } from "../commands/kernel.ts";
import { type DiagnosticDetails, fail, type GivenDiagnostic, asDiagnostic } from "../diagnostics/diagnostic.ts";
import type { HostProgram, Statement } from "../host/nodes.ts";
import { sameNumbers } from "../commands/view.ts";
import { makeId, unreachable } from "../support/invariant.ts";
import type { Alike } from "./alike/alike.ts";
import type { Common } from "./common.ts";

export interface Tape {
  readonly commands: UnlinkedCommand[];
  /** origins[i] is that of commands[i]. */
  readonly origins: Origin[];
  readonly kernels: Kernel[];
  readonly pairs: OneSided[];
  readonly peerCollectives: PeerCollective[];
  eventCount: number;
  /** The list of the rank before. */
  readonly latest: Common["latest"];
  readonly textOf: (statement: Statement) => string;
  /** Notes the statement of each origin, if several ranks are recorded. */
  readonly statements: Map<Origin, Statement> | null;
  readonly regions: HostProgram["regions"];
  /** The current statement; null outside the program's body. */
  statement: Statement | null;
  /** The origin of the current visit, created for its first command. */
  origin: Origin | null;
  /** Positions of the current statement and its enclosing statements, outermost first. */
  readonly path: number[];
  readonly iteration: number[];
}

/** An empty tape. */
export function createTape(program: HostProgram, common: Common, alike: Alike | null): Tape {
  return {
    commands: [],
    origins: [],
    kernels: [],
    pairs: [],
    peerCollectives: [],
    eventCount: 0,
    latest: common.latest,
    textOf: common.statements(program),
    statements: alike?.statements ?? null,
    regions: program.regions,
    statement: null,
    origin: null,
    path: [],
    iteration: [],
  };
}

/** Appends a command. Its origin is the current statement and iteration. */
export function emit(tape: Tape, command: UnlinkedCommand): void {
  const { commands, origins } = tape.latest;
  const index = tape.commands.length;
  const [before, originBefore] = [commands[index], origins[index]];
  if (tape.origin === null) {
    tape.origin = currentOrigin(tape, originBefore);
    if (tape.statement !== null) tape.statements?.set(tape.origin, tape.statement);
  }
  tape.commands.push(before !== undefined && isSame(command, before) ? before : command);
  tape.origins.push(tape.origin);
}

function currentOrigin(tape: Tape, before: Origin | undefined): Origin {
  const { path, iteration } = tape;
  const statement = tape.statement === null ? outside(tape) : tape.textOf(tape.statement);
  const region = currentRegion(tape);
  const isBefore =
    before?.statement === statement &&
    before.region === region &&
    sameNumbers(before.path, path) &&
    sameNumbers(before.iteration, iteration);
  if (isBefore) return before;
  const origin = { statement, path: [...path], iteration: [...iteration] };
  return region === undefined ? origin : { ...origin, region };
}

/** What comes before the body is of the first region, and what comes after it of the last. */
export function currentRegion({ regions, path: [statement = 0] }: Tape): number | undefined {
  return regions?.[statement] ?? regions?.at(-1);
}

/** Of commands without operands. The others nearly always differ between ranks. */
function isSame(a: UnlinkedCommand, b: UnlinkedCommand): boolean {
  if (a.kind !== b.kind || a.stream !== b.stream) return false;
  switch (a.kind) {
    case "recordEvent":
    case "waitEvent":
      return b.kind === a.kind && a.event === b.event;
    case "alloc":
    case "free":
      return b.kind === a.kind && a.buffer === b.buffer;
    case "signalPeer":
    case "waitPeer":
      return b.kind === a.kind && a.pair === b.pair && a.slot === b.slot;
    case "copyPeer":
      return b.kind === a.kind && a.pair === b.pair;
    case "signalRank":
    case "waitRank":
      return b.kind === a.kind && a.collective === b.collective && a.position === b.position && a.slot === b.slot;
    case "copyRank":
      return b.kind === a.kind && a.collective === b.collective && a.position === b.position;
    case "combineRanks":
      return b.kind === a.kind && a.collective === b.collective;
    case "launch":
    case "copy":
    case "transfer":
      return false;
    default:
      return unreachable(a);
  }
}

/** The line of the container before the body, or after it. */
function outside({ path }: Tape): string {
  return path.length === 0 ? "%HostIrContainer" : "} // %HostIrContainer";
}

/** A new event. Each recordEvent has a separate one. */
export function nextEvent(tape: Tape): EventId {
  return makeId<EventId>(tape.eventCount++);
}

export function addKernel(tape: Tape, kernel: Kernel): KernelId {
  return makeId<KernelId>(tape.kernels.push(kernel) - 1);
}

/** Throws a diagnostic at the current statement and iteration. */
export function failHere(tape: Tape, rank: number, ...fault: GivenDiagnostic<Omit<DiagnosticDetails, "place">>): never {
  const diagnostic = asDiagnostic(fault);
  const { statement, iteration, textOf } = tape;
  const visit = iteration.length === 0 ? "" : `, iteration ${iteration.join(".")}`;
  return fail({
    ...diagnostic,
    ...(statement === null ? {} : { place: { kind: "statement", text: textOf(statement) } }),
    notes: [...(diagnostic.notes ?? []), `on rank ${rank}${visit}`],
  });
}
