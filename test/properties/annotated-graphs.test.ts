/** A few of the random graphs of annotated-graphs.long.test.ts. */
import { it } from "vitest";
import { requireGraphs } from "./check-graph.ts";

it("random graphs annotated on inputs only", async () => {
  await requireGraphs({ numRuns: 3, seed: 3 });
});
