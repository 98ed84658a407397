/** Diagnostics of link, which name the host programs' statements. */
import type { Diagnostic, Place } from "../../../diagnostics/diagnostic.ts";
import { at } from "../../../support/invariant.ts";
import { type CommandBase, type Origin, originText } from "../../command.ts";

/** A command of one rank's list. */
export interface CommandRef {
  readonly rank: number;
  readonly command: number;
}

/** What messages need of a rank's list, linked or not. */
export interface Listed {
  readonly commands: readonly CommandBase[];
  readonly origins: readonly Origin[];
}

function statementOf(lists: readonly Listed[], { rank, command }: CommandRef): string {
  return originText(at(at(lists, rank).origins, command));
}

function placeOf(lists: readonly Listed[], ref: CommandRef): Place {
  const { stream } = at(at(lists, ref.rank).commands, ref.command);
  return { kind: "command", rank: ref.rank, stream, text: statementOf(lists, ref) };
}

export interface Mismatch {
  readonly message: string;
  /** The command that the message is about. */
  readonly at: CommandRef;
  /** The command of another rank that does not fit, if there is one. */
  readonly against: CommandRef | null;
  readonly found: string;
  readonly expected: string;
  readonly help: string;
}

/** A `transfer-mismatch` that names the statements of both ranks. */
export function mismatch(lists: readonly Listed[], problem: Mismatch): Diagnostic {
  const { against } = problem;
  return {
    code: "transfer-mismatch",
    message: problem.message,
    place: placeOf(lists, problem.at),
    found: problem.found,
    expected: problem.expected,
    help: problem.help,
    ...(against === null ? {} : { notes: [`on rank ${against.rank}: ${statementOf(lists, against)}`] }),
  };
}
