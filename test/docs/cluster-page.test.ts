/** docs/cluster.md has no message that the code lacks, and every message of the MPI back end has a fix. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { fits, messagesIn, rowsOf } from "./messages-in.ts";

const root = path.resolve(import.meta.dirname, "../..");
const rows = rowsOf(readFileSync(path.join(root, "docs/cluster.md"), "utf8"));
const filesIn = (folder: string): readonly string[] =>
  readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `${folder}/${name}`);
const messages = [...filesIn("src/backends/mpi"), "src/launch/mpi-world.ts", "src/cli/ranks/run-over-mpi.ts"].flatMap(
  messagesIn,
);
/** Those of GPUs on several hosts; docs/gpu.md has the others. */
const more = [...filesIn("src/launch"), ...filesIn("src/backends/cuda")].flatMap(messagesIn);

it("trouble-shooting has the messages of the code", () => {
  expect(rows.length).toBeGreaterThan(2);
  expect(rows.filter((row) => ![...messages, ...more].some((message) => fits(message, row)))).toEqual([]);
  expect(messages.filter(({ hasFix }) => !hasFix)).toEqual([]);
});
