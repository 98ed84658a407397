/** What messages, traces and flight records say about a rank's commands. */
import { type Command, originText } from "../../../commands/command.ts";
import { commandDetails } from "../../../commands/command-text.ts";
import type { Program } from "../../../commands/program.ts";
import type { Place } from "../../../diagnostics/diagnostic.ts";
import { at } from "../../../support/invariant.ts";
import { type FlightPlan, flightPlans } from "../../../trace/flight/flight-record.ts";

export interface ListNotes {
  readonly rank: number;
  readonly world: number;
  readonly commandCount: number;
  readonly kindOf: (command: number) => Command["kind"];
  /** The text after its kind: `slot 3`. */
  readonly detailsOf: (command: number) => string;
  readonly statementOf: (command: number) => string;
  /** Made when it is first asked for. */
  readonly flight: () => FlightPlan;
}

/** `plans` may be shared by the ranks of the Program. */
export function programNotes(program: Program, rank: number, plans = flightPlans(program)): ListNotes {
  const own = at(program.ranks, rank);
  let flight: FlightPlan | null = null;
  return {
    rank,
    world: program.ranks.length,
    commandCount: own.commands.length,
    kindOf: (command) => at(own.commands, command).kind,
    detailsOf: (command) => commandDetails(own, command),
    statementOf: (command) => originText(at(own.origins, command)),
    flight: () => (flight ??= plans(rank)),
  };
}

/** `waitSignal slot 3`. */
export function commandText({ kindOf, detailsOf }: ListNotes, command: number): string {
  return `${kindOf(command)} ${detailsOf(command)}`;
}

/** `command` -1 stands for an edge that the planner added. */
export function commandPlace(notes: ListNotes, command: number): Extract<Place, { readonly kind: "command" }> {
  const { rank, flight, statementOf } = notes;
  if (command < 0) return { kind: "command", rank, stream: 0, text: "an edge at the start or end of the list" };
  const text = `command ${command}, ${commandText(notes, command)}, of ${statementOf(command)}`;
  return { kind: "command", rank, stream: at(flight().commands, command).stream, text };
}
