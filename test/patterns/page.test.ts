/** The faults that docs/patterns.md lists are those of broken-patterns.ts, and each pattern has one. */
import { expect, it } from "vitest";
import { brokenPatterns } from "./broken-patterns.ts";
import { rowsOfPage } from "./page-rows.ts";

it("the page names faults of broken-patterns.ts with their findings", () => {
  const faults = rowsOfPage("fault");
  const known = brokenPatterns.map(({ example, fault, code }) => [example, fault, `\`${code}\``]);
  for (const row of faults) expect(known).toContainEqual(row);
  const patterns = rowsOfPage("moves under kernels").map(([link = ""]) => /\[(.*)\]/u.exec(link)?.[1]);
  expect([...new Set(faults.map(([example]) => example))]).toEqual(patterns);
});
