/**
 * The repair of a pattern that lacks a line puts the line back on all ranks, and the outputs have the bits of the program
 * as lowered, which `--check` compares with the oracle (cli/examples.sampled.test.ts).
 */
import { expect, it } from "vitest";
import { repairHosts } from "../../src/compile/repair/repair-hosts.ts";
import { outputsOf } from "../verify/mutants/replay.ts";
import { brokenHosts, compiled, hostsOf } from "./broken-hosts.ts";
import { brokenPatterns } from "./broken-patterns.ts";

const repairable = brokenPatterns.filter(({ repair }) => repair !== null);

it.each(repairable)("$example: $fault", async (pattern) => {
  const { devices, repair } = pattern;
  const hosts = await hostsOf(pattern);
  const repaired = repairHosts(compiled(brokenHosts(pattern, hosts), devices));
  const all = Array.from({ length: devices }, (_, rank) => rank);
  expect(repaired?.added.map(({ text, ranks }) => ({ text, ranks }))).toEqual([{ text: repair, ranks: all }]);
  const [intact, mended] = [hosts, repaired?.hosts ?? []].map((each) => compiled(each, devices));
  expect(mended?.report.ok).toBe(true);
  if (intact === undefined || mended === undefined) return;
  expect(await outputsOf(mended.program, "seed:1")).toBe(await outputsOf(intact.program, null));
});
