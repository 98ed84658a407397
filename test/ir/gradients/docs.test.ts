/** The example of docs/gradients.md is tour.ts, and prints and communicates as the page says. */
import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { collectivesOf } from "../../support/collectives-of.ts";
import { fusion, text } from "./tour.ts";

it("docs/gradients.md shows the tour and its output", async () => {
  const page = await readFile(new URL("../../../docs/gradients.md", import.meta.url), "utf8");
  const tour = await readFile(new URL("./tour.ts", import.meta.url), "utf8");
  expect(page).toContain(
    ["```ts", tour.replace("../../../src/index.ts", "@braid-compiler/braid") + "```", ""].join("\n"),
  );
  // The outputs after z.
  const [, outputs = ""] = /-> \((?<outputs>.*)\) :/u.exec(text) ?? [];
  const lines = outputs.split(/, (?=T)/u).slice(1);
  expect(page).toContain(["```text", ...lines, "```", ""].join("\n"));
  expect(page).toContain("The program has two Allreduces");
  expect(collectivesOf(fusion, 2)).toBe("Allreduce 2");
});
