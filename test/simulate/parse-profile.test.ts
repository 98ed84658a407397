/** Messages about bad machine profiles. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { type Diagnostic, DiagnosticError } from "@braid-compiler/braid";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { roundProfile } from "./profile.ts";

const profiles = path.resolve(import.meta.dirname, "../../profiles");

it("reads what was written", () => {
  expect(parseProfile(JSON.stringify(roundProfile), "machine.json")).toEqual(roundProfile);
});

it("reads what kernels in peers' memory take, and GEMMs that leave SMs for them", () => {
  const profile = {
    ...roundProfile,
    reductionsInPeers: [{ bytes: 1000, microseconds: 40 }],
    margins: { m: [512, 1024], n: [1024], k: [2048], factors: [1.25, 1.05], room: [0, 0.9] },
  };
  expect(parseProfile(JSON.stringify(profile), "machine.json")).toEqual(profile);
});

it("reads rates of attention", () => {
  const attention = [{ dtype: "float" as const, lengths: [64, 256], forward: [1, 2], backward: [0.5, 1] }];
  const profile = { ...roundProfile, attention };
  expect(parseProfile(JSON.stringify(profile), "machine.json")).toEqual(profile);
});

it("reads profiles without sums, load and joins", () => {
  const { reductions: _, sustained: __, costs, ...earlier } = roundProfile;
  const { join: ___, ...earlierCosts } = costs;
  const read = parseProfile(JSON.stringify({ ...earlier, costs: earlierCosts }), "machine.json");
  expect(read).toEqual({ ...earlier, costs: { ...earlierCosts, join: 0 } });
});

describe("refuses", () => {
  const [grid] = roundProfile.products;
  const margins = { m: [512, 1024], n: [1024], k: [2048], factors: [1.25, 1.05], room: [0, 0.9] };
  it.each([
    ["no JSON", "{", "machine.json"],
    ["a list", [], "profile in"],
    ["another version", { ...roundProfile, version: 2 }, "profile.version"],
    ["no timings", { ...roundProfile, memory: [] }, "profile.memory"],
    ["a text for a number", { ...roundProfile, memory: [{ bytes: "1", microseconds: 1 }] }, "profile.memory[0].bytes"],
    ["less than nothing", { ...roundProfile, costs: { ...roundProfile.costs, run: -1 } }, "profile.costs.run"],
    [
      "a product that is faster beside others",
      { ...roundProfile, costs: { ...roundProfile.costs, underTransfer: 0.5 } },
      "profile.costs.underTransfer",
    ],
    ["bytes that fall", { ...roundProfile, peerCopies: [...roundProfile.peerCopies].reverse() }, "profile.peerCopies"],
    [
      "rates that are not those of the grid",
      { ...roundProfile, products: [{ ...grid, teraflops: [1, 2] }] },
      "profile.products[0].teraflops",
    ],
    ["a grid that does not ascend", { ...roundProfile, products: [{ ...grid, m: [2, 1] }] }, "profile.products[0].m"],
    [
      "a dtype that there is not",
      { ...roundProfile, products: [{ ...grid, dtype: "float8" }] },
      "profile.products[0].dtype",
    ],
    [
      "a kind of transfer that there is not",
      { ...roundProfile, transfers: [{ type: "Gossip", ranks: 2, timings: [] }] },
      "profile.transfers[0].type",
    ],
    [
      "a sum that is not timed",
      { ...roundProfile, reductions: [{ kernel: "unary", dtype: "float", timings: roundProfile.memory }] },
      "profile.reductions[0].kernel",
    ],
    [
      "a device that is faster under load",
      { ...roundProfile, sustained: [1.2, 1.1].map((factor, i) => ({ microseconds: 100 * (i + 1), factor })) },
      "profile.sustained",
    ],
    [
      "attention without a rate for each length",
      { ...roundProfile, attention: [{ dtype: "float", lengths: [64, 256], forward: [1, 2], backward: [1] }] },
      "profile.attention[0].backward",
    ],
    [
      "attention that never ends",
      { ...roundProfile, attention: [{ dtype: "float", lengths: [64], forward: [0], backward: [1] }] },
      "profile.attention[0].forward[0]",
    ],
    [
      "a factor below 1",
      { ...roundProfile, sustained: [{ microseconds: 100, factor: 0.9 }] },
      "profile.sustained[0].factor",
    ],
    ["no sums where there is a place for them", { ...roundProfile, reductions: [] }, "profile.reductions"],
    ["no bytes in peers' memory", { ...roundProfile, reductionsInPeers: [] }, "profile.reductionsInPeers"],
    [
      "a product that is faster with a margin",
      { ...roundProfile, margins: { ...margins, factors: [0.9, 1] } },
      "profile.margins.factors[0]",
    ],
    ["more room than all", { ...roundProfile, margins: { ...margins, room: [0, 90] } }, "profile.margins.room[1]"],
    [
      "room at fewer points than the grid has",
      { ...roundProfile, margins: { ...margins, room: [1] } },
      "profile.margins.room",
    ],
    ["no machine", { ...roundProfile, machine: undefined }, "profile.machine"],
  ])("%s", (_, value, place) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    let found: unknown = null;
    try {
      parseProfile(text, "machine.json");
    } catch (error) {
      found = error;
    }
    if (!(found instanceof DiagnosticError)) throw new Error("it was read");
    const [first] = found.diagnostics;
    expect(first).toMatchObject({ code: "profile-invalid", place: { kind: "option" } });
    expect(first?.place).toMatchObject({ text: expect.stringContaining(place) as string });
    expect(first?.place).toMatchObject({ text: expect.stringContaining("machine.json") as string });
  });
});

describe("says what is wrong, and what is expected", () => {
  const { costs, products } = roundProfile;
  const [grid] = products;
  const { microseconds: _, ...untimed } = roundProfile.memory[0] ?? { microseconds: 0 };
  const { signal: __, ...costsWithoutSignal } = costs;
  it.each([
    ["an unknown entry", { ...roundProfile, reduction: [] }, "reduction", "did you mean reductions?"],
    ["an unknown cost", { ...roundProfile, costs: { ...costs, gossip: 1 } }, "gossip", "leave it out"],
    [
      "an unknown entry of a grid",
      { ...roundProfile, products: [{ ...grid, teraflop: [1] }] },
      "teraflop",
      "did you mean teraflops?",
    ],
    [
      "an unknown entry of a timing",
      { ...roundProfile, transfers: [{ type: "group", ranks: 2, timings: [{ bytes: 1, microseconds: 2, rank: 0 }] }] },
      "rank",
      "leave it out",
    ],
  ])("%s", (_name, value, found, help) => {
    expect(diagnosticOf(value)).toMatchObject({
      message: `a machine profile has an unknown entry ${found}`,
      place: { text: expect.stringMatching(new RegExp(String.raw`\.${found} in machine\.json$`)) as string },
      found,
      expected: expect.stringMatching(/^one of \w+, /) as string,
      help,
    });
  });

  it.each([
    [{ ...roundProfile, costs: costsWithoutSignal }, "profile.costs.signal", "nothing", 'an entry "signal"'],
    [{ ...roundProfile, memory: [untimed] }, "profile.memory[0].microseconds", "nothing", 'an entry "microseconds"'],
    [[], "profile", "[]", "an object"],
    [{ ...roundProfile, costs: [] }, "profile.costs", "[]", "an object"],
    [{ ...roundProfile, costs: 3 }, "profile.costs", "3", "an object"],
    [{ ...roundProfile, transfers: {} }, "profile.transfers", "{}", "a list that is not empty"],
    [{ ...roundProfile, machine: 7 }, "profile.machine", "7", "a text"],
    [{ ...roundProfile, costs: { ...costs, run: null } }, "profile.costs.run", "null", "a number"],
    [{ ...roundProfile, costs: { ...costs, join: "0" } }, "profile.costs.join", '"0"', "a number"],
    [
      { ...roundProfile, products: [{ ...grid, teraflops: [0] }] },
      "profile.products[0].teraflops[0]",
      "0",
      "a number greater than 0",
    ],
    [
      { ...roundProfile, products: [{ ...grid, teraflops: [1, 2] }] },
      "profile.products[0].teraflops",
      "[1,2]",
      "1 rates, one per point of the grid",
    ],
  ])("%j", (value, place, found, expected) => {
    expect(diagnosticOf(value)).toMatchObject({
      code: "profile-invalid",
      place: { kind: "option", text: `${place} in machine.json` },
      found,
      expected,
    });
  });
});

it.each(readdirSync(profiles))("reads every entry of the shipped profile %s", (file) => {
  const text = readFileSync(path.join(profiles, file), "utf8");
  expect(parseProfile(text, file)).toEqual(JSON.parse(text));
});

it("refuses JSON of any depth with one message", () => {
  const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
  expect(() => parseProfile(deep, "machine.json")).toThrow("found: it is nested more than 100 deep");
});

function diagnosticOf(value: unknown): Diagnostic | undefined {
  try {
    parseProfile(JSON.stringify(value), "machine.json");
  } catch (error) {
    if (error instanceof DiagnosticError) return error.diagnostics[0];
  }
  return undefined;
}
