/**
 * Hand-built programs print as nvFuser's dumps of the same programs, except for numbers that depend on the compiler's
 * internals.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { print } from "@braid-compiler/braid";
import { normaliseDump } from "../support/normalise-dump.ts";
import { dumpPrograms } from "./dump-programs.ts";

const folder = path.resolve(import.meta.dirname, "../fixtures/dumps");

describe.each(dumpPrograms)("$name", ({ name, style, build }) => {
  const dump = normaliseDump(readFileSync(path.join(folder, `${name}.hir`), "utf8"));
  const printed = normaliseDump(print(build(), { style }));

  it("prints as the dump", () => {
    expect(printed.text).toBe(dump.text);
  });

  it("defines no index that the dump does not define", () => {
    expect([...dump.definitions]).toEqual(expect.arrayContaining([...printed.definitions]));
    expect(printed.definitions.size > 0).toBe(dump.definitions.size > 0);
  });
});
