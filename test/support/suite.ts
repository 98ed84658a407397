/**
 * The suite that runs: `npm test` runs "quick", `npm run test:all` also "long". Files named `*.sampled.test.ts` are in
 * both. Quick runs a sample of their cases and fewer runs of their properties; long runs the other cases and all runs.
 */
import { inject } from "vitest";
import { splitCases } from "./split-cases.ts";

type Suite = "quick" | "long";

declare module "vitest" {
  interface ProvidedContext {
    readonly suite: Suite;
  }
}

/** A count of runs, seeds or sizes that depends on the suite. */
export function runs(counts: Readonly<Record<Suite, number>>): number {
  return counts[inject("suite")];
}

/** This suite's part of the cases, see `splitCases`. Of what is left to long, it has every `kept`-th. */
export function sample<Case extends object>(cases: readonly Case[], every: number, kept = 1): readonly Case[] {
  const { quick, long } = splitCases(cases, every);
  return inject("suite") === "quick" ? quick : long.filter((_, i) => i % kept === 0);
}

/** Settings of a property. Its seed is that of `property-seed.ts`. */
export function draws(counts: Readonly<Record<Suite, number>>): { readonly numRuns: number } {
  return { numRuns: runs(counts) };
}
