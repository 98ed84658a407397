/** A file's name tells its suite: only sampled files take their cases or counts from support/suite.ts. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";

const folder = path.resolve(import.meta.dirname, "..");
const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".test.ts"));

it("names of test files are of one suite, or sampled for both", () => {
  expect(files.length).toBeGreaterThan(150);
  expect(
    files.filter((file) => !/^[a-z0-9-]+(\.long|\.sampled|\.browser)?\.test\.ts$/.test(path.basename(file))),
  ).toEqual([]);
});

it("files that take samples, and no others, are named so", () => {
  const sampling = files.filter((file) => /from ".*\/suite\.ts"/.test(readFileSync(path.join(folder, file), "utf8")));
  expect(sampling.toSorted()).toEqual(files.filter((file) => file.includes(".sampled.")).toSorted());
});
