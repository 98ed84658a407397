/** Tests of the Python package that are written in Python. */
import { readdirSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { ended } from "./python-ranks.ts";

const files = readdirSync(import.meta.dirname).filter((name) => /^test_.*\.py$/.test(name));

it.each(files)("%s passes", async (file) => {
  const { status, err } = await ended(["python3", "-B", path.join(import.meta.dirname, file), "-v"], {});
  expect(err).toMatch(/^Ran [1-9]\d* tests? in .*\n\nOK\n$/m);
  expect(status).toBe(0);
});
