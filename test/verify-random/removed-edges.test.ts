/** Random lowered programs without one event, wait or signal: the verifier's verdict is the judge's. */
import { expect, it } from "vitest";
import { compareRemovedEdges } from "./removed-edges.ts";

it("100 random programs without one edge: the same verdict", () => {
  const counts = [...compareRemovedEdges(100).values()];
  // Either verdict, and every kind of edge.
  expect(counts.reduce((sum, { wrong }) => sum + wrong, 0)).toBeGreaterThan(20);
  expect(counts.reduce((sum, { right }) => sum + right, 0)).toBeGreaterThan(5);
  for (const { wrong, right } of counts) expect(wrong + right).toBeGreaterThan(0);
}, 240_000);
