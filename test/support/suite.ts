/**
 * The suite that runs: `npm test` runs "quick", `npm run test:all` also "long". Files named `*.sampled.test.ts` are in
 * both. Quick runs a sample of their cases and fewer runs of their properties; long runs the other cases and all runs.
 * $LONG_SHARE, 1 by default, is the part of these that long runs: CI has minutes for a third of them.
 */
import process from "node:process";
import { inject } from "vitest";
import { splitCases } from "./split-cases.ts";

type Suite = "quick" | "long";

declare module "vitest" {
  interface ProvidedContext {
    readonly suite: Suite;
  }
}

// oxlint-disable-next-line node/no-process-env -- set by whoever starts the tests
const share = Number(process.env["LONG_SHARE"] ?? 1);

/** A count of runs, seeds or sizes that depends on the suite. */
export function runs({ quick, long }: Readonly<Record<Suite, number>>): number {
  return inject("suite") === "quick" ? quick : Math.ceil(share * long);
}

/** This suite's part of the cases, see `splitCases`. Of what is left to long, it has every `kept`-th. */
export function sample<Case extends object>(cases: readonly Case[], every: number, kept = 1): readonly Case[] {
  const { quick, long } = splitCases(cases, every);
  return inject("suite") === "quick" ? quick : long.filter((_, i) => i % Math.round(kept / share) === 0);
}

/** Every n-th case by its place for quick, and the others for long. */
export function everyNth<Case>(cases: readonly Case[], every: number): readonly Case[] {
  const isQuick = inject("suite") === "quick";
  const own = cases.filter((_, i) => (i % every === 0) === isQuick);
  return isQuick ? own : own.filter((_, i) => i % Math.round(1 / share) === 0);
}

/** Settings of a property. Its seed is that of `property-seed.ts`. */
export function draws(counts: Readonly<Record<Suite, number>>): { readonly numRuns: number } {
  return { numRuns: runs(counts) };
}
