/** docs/cluster.md has every message of the MPI back end, and no other. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { fits, messagesIn, rowsOf } from "./messages-in.ts";

const root = path.resolve(import.meta.dirname, "../..");
const rows = rowsOf(readFileSync(path.join(root, "docs/cluster.md"), "utf8"));
const files = readdirSync(path.join(root, "src/backends/mpi"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => `src/backends/mpi/${name}`);
const messages = [...files, "src/launch/mpi-world.ts"].flatMap(messagesIn);

it("trouble-shooting has the messages of the code", () => {
  expect(rows.length).toBeGreaterThan(5);
  expect(rows.filter((row) => !messages.some((message) => fits(message, row)))).toEqual([]);
  expect(messages.filter((message) => !rows.some((row) => fits(message, row)))).toEqual([]);
});
