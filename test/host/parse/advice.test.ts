/** The advice of diagnostics about dumps, typed: each text is refused with it, and read after the edit that it asks for. */
import { expect, it } from "vitest";
import { parse } from "@braid-compiler/braid";
import { dumpAdvice } from "./dump-advice.ts";

it.each(dumpAdvice)("$fix", ({ fix, refused, edit, options = {} }) => {
  expect(() => parse(refused)).toThrow(`fix: ${fix}`);
  expect(() => parse(edit(refused), options)).not.toThrow();
});
