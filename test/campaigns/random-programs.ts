import { checkPrograms } from "../verify/random/false-alarms.ts";
import { compareRemovedEdges } from "../verify/random/removed-edges.ts";
import type { Campaign } from "./campaign.ts";

const seed = 20_261_121;

export const randomPrograms: Campaign = {
  what: "random lowered programs have no finding; for a tenth of them without one edge, verifier and judge agree",
  count: 10_000,
  // Both throw where something does not hold.
  run: async (count) => {
    const { programs, commands, withStreams, withCommunication } = checkPrograms(count, seed);
    const edges = Object.values(compareRemovedEdges(Math.ceil(count / 10), seed));
    const sum = (of: "wrong" | "right"): number => edges.reduce((total, counts) => total + counts[of], 0);
    return {
      ok: true,
      text: `${programs} programs of ${commands} commands, ${withStreams} with several streams, ${withCommunication} with communication; without an edge ${sum("wrong")} wrong, ${sum("right")} right`,
    };
  },
};
