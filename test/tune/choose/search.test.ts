/** The descent over choices goes on with the fastest combination of each root, and leaves out what is known. */
import { expect, it } from "vitest";
import type { ChoiceRow } from "../../../src/tune/choose/candidates.ts";
import { searchSchedules } from "../../../src/tune/choose/search.ts";

const row = (...names: readonly string[]): ChoiceRow => [
  { name: "", schedule: {} },
  ...names.map((name) => ({ name, schedule: {} })),
];

it("takes the fastest choice of each row to the next, for each root", () => {
  const rows = [row("a", "b"), row("c")];
  const times: Readonly<Record<string, number>> = { x: 5, "x a": 4, "x b": 6, "x a c": 7, y: 3, "y a": 3, "y b": 2 };
  const tried: string[] = [];
  searchSchedules(
    ["x", "known", "y"].map((of) => ({ of, rows })),
    (of, { names }) => {
      const name = [of, ...names].join(" ");
      tried.push(name);
      return of === "known" ? null : (times[name] ?? 9);
    },
  );
  expect(tried).toEqual(["x", "x a", "x b", "x a c", "known", "y", "y a", "y b", "y b c"]);
});
