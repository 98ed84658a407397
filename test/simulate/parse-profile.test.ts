/** What is said of machine profiles that are not as they should be. */
import { describe, expect, it } from "vitest";
import { DiagnosticError } from "braid";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { roundProfile } from "./profile.ts";

it("reads what was written", () => {
  expect(parseProfile(JSON.stringify(roundProfile), "machine.json")).toEqual(roundProfile);
});

it("reads what kernels in peers' memory take, and products that leave room for them", () => {
  const profile = {
    ...roundProfile,
    reductionsInPeers: [{ bytes: 1000, microseconds: 40 }],
    margins: { m: [512, 1024], n: [1024], k: [2048], factors: [1.25, 1.05], room: [0, 0.9] },
  };
  expect(parseProfile(JSON.stringify(profile), "machine.json")).toEqual(profile);
});

it("reads profiles of before sums, load and joins were measured", () => {
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
