/** Every fixture of every pass: the text beside it shows the program after the pass. */
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { DiagnosticError, lower } from "@braid-compiler/braid";
import { passes, printProgramOfStage } from "@braid-compiler/braid/internals";
import type { Fixture, Fixtures } from "../support/fixture.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "../fixtures");
const rows = Object.values(passes).map(({ name }) => name);
/** The rows that rewrite Fusions. */
const rewrites = new Set(rows.slice(rows.indexOf("remove-dead-ops"), rows.indexOf("segment")));

it("every row of the pipeline has fixtures, and every folder is a row's", () => {
  const others = ["checked", "dumps", "findings", "programs", "sharding", "tensor-files"];
  expect(readdirSync(root).filter((folder) => !others.includes(folder))).toEqual(rows.toSorted());
});

describe.each([...rows, "checked"])("%s", async (pass) => {
  const { default: fixtures } = (await import(join(root, pass, "fixtures.ts"))) as { readonly default: Fixtures };

  it.each(Object.entries(fixtures))("%s", async (name, fixture) => {
    await expect(textOf(fixture, pass, name)).toMatchFileSnapshot(join(root, pass, `${name}.txt`));
  });

  it("has no other texts", () => {
    const texts = readdirSync(join(root, pass)).filter((name) => name.endsWith(".txt"));
    expect(texts).toEqual(
      Object.keys(fixtures)
        .map((name) => `${name}.txt`)
        .toSorted(),
    );
  });
});

/** Without the lines of the fixture's file, which change with it. */
function withoutLines(message: string): string {
  return message.replaceAll(/^ {2}where: (?:T\d+ is from .*|\S+:\d+:\d+)\n/gmu, "");
}

function textOf(fixture: Fixture, pass: string, name: string): string {
  let before = "";
  let last = "";
  let after = "";
  const rewrittenBy: string[] = [];
  try {
    const fusion = fixture.build();
    last = printProgramOfStage(fusion.data());
    lower(fusion, {
      ...fixture.options,
      onPass: (event) => {
        const text = printProgramOfStage(event.program);
        if (event.pass === pass) [before, after] = [last, event.changed ? text : "(unchanged)"];
        if (event.changed && rewrites.has(event.pass)) rewrittenBy.push(event.pass);
        last = text;
      },
    });
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    expect(name, error.message).toMatch(/^error-/u);
    return `${fixture.shows}\n\n--- before\n${last.trim()}\n--- diagnostic\n${withoutLines(error.message)}\n`;
  }
  expect(name).not.toMatch(/^error-/u);
  if (rewrites.has(pass)) expect(rewrittenBy).toEqual(fixture.rewrittenBy ?? rewrittenBy.filter((row) => row === pass));
  return `${fixture.shows}\n\n--- before\n${before.trim()}\n--- after\n${after.trim()}\n`;
}
