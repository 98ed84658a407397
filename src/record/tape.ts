/**
 * Where a recording writes: the commands, each with its origin, and the tables that they number. The origin is the
 * statement under way. Its text is printed once per statement, and all commands of one visit share one Origin.
 */
import type { EventId, KernelId, Origin } from "../commands/command.ts";
import type { OneSided, PeerCollective, UnlinkedCommand } from "../commands/command-list.ts";
import type { Kernel } from "../commands/kernel.ts";
import { type Diagnostic, fail } from "../diagnostics/diagnostic.ts";
import type { HostProgram, Statement } from "../host/nodes.ts";
import { createStatementText } from "../host/print/statement.ts";
import { makeId } from "../support/ids.ts";

export interface Tape {
  readonly commands: UnlinkedCommand[];
  /** origins[i] is that of commands[i]. */
  readonly origins: Origin[];
  readonly kernels: Kernel[];
  readonly pairs: OneSided[];
  readonly peerCollectives: PeerCollective[];
  eventCount: number;
  readonly textOf: (statement: Statement) => string;
  /** The statement under way; null outside the program's body. */
  statement: Statement | null;
  /** The origin of the visit under way, made for its first command. */
  origin: Origin | null;
  /** Positions of the statement under way and of the statements around it, outermost first. */
  readonly path: number[];
  readonly iteration: number[];
}

/** An empty tape. */
export function createTape(program: HostProgram): Tape {
  const textOf = createStatementText(program);
  const texts = new Map<Statement, string>();
  return {
    commands: [],
    origins: [],
    kernels: [],
    pairs: [],
    peerCollectives: [],
    eventCount: 0,
    textOf: (statement) => {
      const text = texts.get(statement) ?? textOf(statement);
      texts.set(statement, text);
      return text;
    },
    statement: null,
    origin: null,
    path: [],
    iteration: [],
  };
}

/** Appends a command; its origin is the statement and iteration under way. */
export function emit(tape: Tape, command: UnlinkedCommand): void {
  tape.origin ??= {
    statement: tape.statement === null ? "%HostIrContainer" : tape.textOf(tape.statement),
    path: [...tape.path],
    iteration: [...tape.iteration],
  };
  tape.commands.push(command);
  tape.origins.push(tape.origin);
}

/** A new event; every recordEvent has its own. */
export function nextEvent(tape: Tape): EventId {
  return makeId<EventId>(tape.eventCount++);
}

/** Adds a kernel. */
export function addKernel(tape: Tape, kernel: Kernel): KernelId {
  return makeId<KernelId>(tape.kernels.push(kernel) - 1);
}

/** Fails at the statement under way, with its iteration. */
export function failHere(tape: Tape, rank: number, diagnostic: Omit<Diagnostic, "place">): never {
  const { statement, iteration, textOf } = tape;
  const visit = iteration.length === 0 ? "" : `, iteration ${iteration.join(".")}`;
  return fail({
    ...diagnostic,
    ...(statement === null ? {} : { place: { kind: "statement", text: textOf(statement) } }),
    notes: [...(diagnostic.notes ?? []), `on rank ${rank}${visit}`],
  });
}
