/** The example of docs/ir.md is test/ir/tour.ts, and prints what the page says. */
import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { lines } from "./tour.ts";

it("docs/ir.md shows the tour and its output", async () => {
  const page = await readFile(new URL("../../docs/ir.md", import.meta.url), "utf8");
  const tour = await readFile(new URL("./tour.ts", import.meta.url), "utf8");
  expect(page).toContain(["```ts", tour.replace("../../src/index.ts", "@braid-compiler/braid") + "```", ""].join("\n"));
  expect(page).toContain(["```text", ...lines, "```", ""].join("\n"));
});
