/** A sample of docs/matrix.md, which matrix.long.test.ts writes: outcomes are in their cells. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { combinations, splitCases } from "../support/split-cases.ts";
import { allSwitches, flagsOf, idioms, outcomesOf, patternFusions, refused } from "./cells.ts";

const file = new URL("../../docs/matrix.md", import.meta.url);

it("patterns under some combinations of lowering options do what docs/matrix.md says", async () => {
  const [, , ...rows] = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) => line.split("|").map((cell) => cell.trim()));
  const patterns = await patternFusions();
  const outcomes = new Map(patterns.map(({ name, fusion }) => [name, outcomesOf(fusion)]));
  expect(rows.length).toBeGreaterThan(10);
  const cases = combinations({ name: [...outcomes.keys()], idiom: idioms, switched: allSwitches });
  const { quick } = splitCases(cases, 499);
  expect(quick.length).toBeGreaterThan(50);
  for (const { name, idiom, switched } of quick) {
    const outcome = await outcomes.get(name)?.({ ...idiom, ...switched });
    const row = rows.find((cells) => cells[1] === flagsOf(idiom));
    const entry = row?.[2]?.split("; ").find((each) => each.startsWith(`\`${name}\`: `));
    const cell = row === undefined ? refused : (entry ?? "ok");
    expect(cell, `${name} ${JSON.stringify({ ...idiom, ...switched })}`).toContain(outcome);
  }
});
