/** What a flight recorder needs to know of a Program. Runs where there are no files, too. */
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import { type FlightPlan, flightPlans } from "../../trace/flight/flight-record.ts";

/** What the ranks of a run are to do. */
export interface Flights {
  readonly world: number;
  readonly planOf: (rank: number) => FlightPlan;
  /** How many commands the rank's list has. */
  readonly commandsOf: (rank: number) => number;
}

export function programFlights(program: Program): Flights {
  return {
    world: program.ranks.length,
    planOf: flightPlans(program),
    commandsOf: (rank) => at(program.ranks, rank).commands.length,
  };
}
