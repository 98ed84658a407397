/**
 * Random graphs of which only inputs, and one chunked axis, are annotated: on 1 to 8 devices, meshes of one and two
 * axes, and without a mesh; any sizes, and any number of chunks, on an axis that devices share as well. Each run draws
 * new ones; a failure prints the seed.
 */
import { expect, it } from "vitest";
import { indexingRecipes } from "./annotated-graphs.ts";
import { requireGraphs } from "./check-graph.ts";

it("give the oracle's result, the same bits in every schedule, and move no more bytes", async () => {
  const numRuns = 70;
  const { ran, compared } = await requireGraphs({ numRuns });
  // A generator whose graphs are mostly refused would test little.
  expect(ran).toBeGreaterThan(0.85 * numRuns);
  expect(compared).toBeGreaterThan(0.25 * numRuns);
}, 240_000);

it("give the oracle's result with sorts, scans, indices and masks", async () => {
  const { ran } = await requireGraphs({ numRuns: 12, seed: 1 }, indexingRecipes);
  expect(ran).toBeGreaterThan(6);
}, 240_000);
