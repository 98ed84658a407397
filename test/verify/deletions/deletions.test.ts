/** A program without a synchronization line: one finding for each buffer, and a repair that puts the line back. */
import { expect, it } from "vitest";
import { deletions, exampleDumps, fixtureDumps } from "./deletions.ts";

const sample = ["allgather.ts", "hand-built.ts"];

it("finds and repairs each deletion in some of the examples and dumps", async () => {
  const examples = (await exampleDumps(2)).filter(
    ({ name }) => name.endsWith(" {}") && sample.some((file) => name.startsWith(file)),
  );
  const programs = [...examples, ...fixtureDumps().filter(({ hosts }) => hosts.length === 1)];
  expect(programs.length).toBeGreaterThan(sample.length);
  const found = programs.flatMap((whole) => deletions(whole).map((each) => ({ name: whole.name, ...each })));
  expect(found.filter(({ isRedundant }) => !isRedundant).length).toBeGreaterThan(10);
  expect(found.filter(({ problems }) => problems.length > 0)).toEqual([]);
});
