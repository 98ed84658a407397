import { requireGraphs } from "../properties/check-graph.ts";
import type { Campaign } from "./campaign.ts";

export const annotatedGraphs: Campaign = {
  what: "random graphs annotated on inputs and one chunked axis: the oracle's result, the same bits in every schedule, no finding, no more bytes than written by hand",
  count: 5_000,
  // Throws the shrunk graph where something does not hold.
  run: async (count) => {
    const { ran, compared } = await requireGraphs({ numRuns: count });
    return { ok: true, text: `${ran} ran, bytes of ${compared} compared` };
  },
};
