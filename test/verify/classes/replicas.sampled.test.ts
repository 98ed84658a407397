/** Programs that lack a statement on every rank: one replica has a finding exactly if the whole has. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { DeviceMesh, DiagnosticError, type Fusion, link, type LowerOptions, verify } from "@braid-compiler/braid";
import type { HostClass } from "../../../src/compile/lowering-class.ts";
import { recordAll } from "../../../src/compile/record.ts";
import { lowerRanks } from "../../../src/compile/lower.ts";
import { without } from "../../../src/compile/repair/insertion.ts";
import { walk } from "../../../src/host/traverse.ts";
import { at } from "../../../src/support/invariant.ts";
import { buildGraph, graphSettings, twoAxisRecipes } from "../../properties/annotated-graphs.ts";
import { draws } from "../../support/suite.ts";
import { trainedMlp } from "../../support/trained-mlp.ts";

interface Verdict {
  readonly ranks: number;
  readonly ok: boolean;
}

/** Null if recording refuses the program. */
function verdictOf(classes: readonly HostClass[], devices: number, isOne: boolean): Verdict | null {
  try {
    const oneReplica = isOne ? { devicesPerHost: devices, least: 1 } : undefined;
    const lists = recordAll(classes, { devices }, { oneReplica });
    return { ranks: lists.length, ok: verify(link(lists), { notes: false, full: true, counterexamples: false }).ok };
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

/** Of the programs that lack one statement, those with replicas: how many are wrong, and how many right. */
function compared(fusion: Fusion, devices: number, options: Omit<LowerOptions, "rank">) {
  const counts = { wrong: 0, right: 0 };
  const { classes } = lowerRanks(fusion, devices, options);
  const [{ host }, ...others] = [at(classes, 0), ...classes.slice(1)];
  // Classes have their own statements.
  if (others.length > 0) return counts;
  for (const statement of walk(host.body)) {
    if (statement.kind !== "Wait" && statement.kind !== "Synchronize") continue;
    const mutated = classes.map((each) => ({ ...each, host: at(without([host], statement), 0) }));
    const [whole, one] = [false, true].map((isOne) => verdictOf(mutated, devices, isOne));
    expect(one?.ok).toBe(whole?.ok);
    if (whole && one && one.ranks < whole.ranks) counts[whole.ok ? "right" : "wrong"]++;
  }
  return counts;
}

it.each(["nccl", "cuda"] as const)("both passes of an MLP, %s", (backend) => {
  const { wrong, right } = compared(trainedMlp(DeviceMesh.ofShape([2, 4])), 8, { backend, devicesPerHost: 4 });
  expect(wrong).toBeGreaterThan(0);
  expect(right).toBeGreaterThan(0);
});

it("random graphs on two axes of devices", () => {
  let wrong = 0;
  fc.assert(
    fc.property(twoAxisRecipes, graphSettings, (recipe, setting) => {
      const { fusion, devices } = buildGraph(recipe);
      const { streams: _, protocol: __, ...options } = setting;
      try {
        wrong += compared(fusion, devices, options).wrong;
      } catch (error) {
        if (!(error instanceof DiagnosticError)) throw error;
      }
    }),
    draws({ quick: 8, long: 150 }),
  );
  expect(wrong).toBeGreaterThan(0);
});
