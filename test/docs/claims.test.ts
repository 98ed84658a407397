/**
 * Claims that a later change can make false. A page, an example or a test that says "no X op" is wrong as soon as Braid
 * has X; an example that claims to be nvFuser's host program is compared with it.
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import * as braid from "@braid-compiler/braid";
import allgatherMatmul from "../../examples/nvfuser/allgather-matmul.ts";
import { opRows } from "../../src/ir/ops/rows.ts";
import { consoleCommands } from "../support/console-blocks.ts";
import { normaliseDump } from "../support/normalise-dump.ts";
import { readmeProgram } from "../support/readme.ts";

const root = path.resolve(import.meta.dirname, "../..");
const read = (file: string): string => readFileSync(path.join(root, file), "utf8");

/** Pages, and comments of examples and of nvFuser's tests. */
const texts = ["docs", "examples", "test/nvfuser"]
  .flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" }).map((name) => `${folder}/${name}`),
  )
  .filter((name) => /\.(?:md|ts)$/u.test(name) && !name.startsWith("docs/api"))
  .concat("README.md");

/** What an op is called in prose, with Braid's name for it. */
const prose: Readonly<Record<string, string>> = {
  random: "uniform",
  concatenation: "cat",
  concatenate: "cat",
  welford: "varMean",
  variance: "varMean",
  padding: "pad",
  gathering: "gather",
  attention: "sdpa",
};

const functions = [...read("docs/ops.md").matchAll(/^- `(?<name>\w+)\(/gmu)].map(
  ({ groups }) => groups?.["name"] ?? "",
);
const names = new Set([...Object.keys(opRows), ...functions].map((name) => name.toLowerCase()));

function hasOp(word: string): boolean {
  return names.has((prose[word.toLowerCase()] ?? word).toLowerCase());
}

/** The words X of "no X op" and "no X numbers", and of "no X:" among the reasons of a table. */
function lacking(text: string): readonly string[] {
  const claims = /(?:\bno (?<op>[\w-]+) (?:ops?|numbers)\b|\| no (?<reason>[\w-]+) *[:|])/giu;
  return [...text.replaceAll(/\s*\n[ */]*/gu, " ").matchAll(claims)].map(
    ({ groups }) => groups?.["op"] ?? groups?.["reason"] ?? "",
  );
}

it("finds the claims that it is for", () => {
  const reasons = [
    "no random numbers: an input",
    "Braid has no Welford op |",
    "no expand op:",
    "| no concatenation: the",
  ];
  expect(reasons.flatMap(lacking)).toEqual(["random", "Welford", "expand", "concatenation"]);
  expect(reasons.flatMap(lacking).filter((word) => !hasOp(word))).toEqual([]);
  expect(hasOp("searchsorted")).toBe(false);
});

it("no text says that Braid lacks an op that it has", () => {
  const wrong = texts.flatMap((file) =>
    lacking(read(file))
      .filter(hasOp)
      .map((word) => `${file}: no ${word}`),
  );
  expect(wrong).toEqual([]);
});

it("allgather-matmul.ts is nvFuser's program, statement by statement, under the options that it names", () => {
  const claiming = texts.filter(
    (file) => file.startsWith("examples/") && read(file).includes("statement by statement"),
  );
  expect(claiming).toEqual(["examples/nvfuser/allgather-matmul.ts"]);
  const [flags = ""] = /--as nvfuser[^\n]*/u.exec(read("examples/nvfuser/allgather-matmul.ts")) ?? [];
  expect(flags).toBe("--as nvfuser:2025-05");

  const [S, D, M, K, N] = [8, 8, 1536, 256, 128];
  const program = allgatherMatmul.build({ devices: D });
  if (!(program instanceof braid.Fusion)) throw new Error("the example is a Fusion");
  const host = braid.lower(program, { deallocate: false, shrink: false, nvfuserLimits: true });
  const printed = normaliseDump(braid.print(host, { style: "2025-05" })).text;
  // The dump leaves sizes open, which the example has.
  const sizes = new Map([
    ["i0", S],
    ["i2", D],
    ["i3", M / (S * D)],
    ["i4", K],
    ["i5", K],
    ["i6", N],
  ]);
  const dump = read("test/fixtures/dumps/e2-allgather-matmul.hir").replaceAll(/size=\( .*? \), zero/gu, (text) => {
    const factors = [...text.matchAll(/i\d+/gu)].map(([name]) => sizes.get(name) ?? 0);
    return `size=${factors.reduce((product, size) => product * size, 1)}, zero`;
  });
  const closed = dump.replaceAll(/\{(?<name>i\d+)\}/gu, (text, name: string) => `{${sizes.get(name) ?? text}}`);
  expect(printed).toBe(normaliseDump(closed).text);
});

it("a command whose fingerprint a page shows gives it on every machine", () => {
  const [, start = ""] = /"start": "([^"]+)"/u.exec(read("package.json")) ?? [];
  const commands = ["README.md", "docs/command-line.md", "docs/examples.md"]
    .flatMap(consoleCommands)
    .map(({ command, output }) => ({ command: command === "npm ci && npm start" ? start : command, output }));
  // The machine's BLAS adds in another order, so its bits are others.
  const multiplies = (command: string): boolean => {
    const [, file = ""] = / run (\S+)/u.exec(command) ?? [];
    return /\b(?:linear|matmul|sdpa)\(/u.test(file === "pipeline.ts" ? readmeProgram() : read(file));
  };
  const shown = commands.filter(({ command, output }) => / [0-9a-f]{16} /u.test(output) && multiplies(command));
  expect(shown.length).toBeGreaterThan(3);
  expect(shown.flatMap(({ command }) => (command.includes("--blas off") ? [] : [command]))).toEqual([]);
});

it("docs/pytorch.md builds the wheel and the package that it installs", () => {
  expect(read("docs/pytorch.md")).toContain("    pip wheel --no-deps -w . ./python\n    npm ci && npm pack\n");
});
