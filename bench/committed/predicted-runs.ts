/** Runs with their predicted times on the profile of their machine. */
import { readFileSync } from "node:fs";
import type { Program } from "../../src/commands/program.ts";
import { explainRun } from "../../src/explain/explain-run.ts";
import type { IntervalRun } from "../../src/explain/interval.ts";
import { type InUse, runCost } from "../../src/simulate/gemm-cost.ts";
import type { MachineProfile, Timing } from "../../src/simulate/machine-profile.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { simulate } from "../../src/simulate/simulate.ts";
import { benchRuns } from "./bench-runs.ts";
import type { CommittedRun, MeasuredProfile } from "./committed-run.ts";
import { mlpRuns, normRuns } from "./other-runs.ts";
import { speedRuns } from "./speed-runs.ts";

export interface PredictedRun extends Omit<CommittedRun, "program" | "isRun">, IntervalRun {
  /** By how many milliseconds `milliseconds` grows with each figure of InUse. */
  readonly perInUse: InUse;
}

/** All that the interval is about, and pipelines of the self-test. */
export function committedRuns(): readonly PredictedRun[] {
  return predictedRuns([...benchRuns(), ...speedRuns(), ...mlpRuns(), ...normRuns()]);
}

export function predictedRuns(runs: readonly CommittedRun[]): readonly PredictedRun[] {
  const known = new Map<Program, ReturnType<typeof predicted>>();
  return runs.map(({ program, isRun, ...run }) => {
    const found = known.get(program) ?? predicted(program, isRun, run.graph, shippedProfile(run.profile));
    known.set(program, found);
    return { ...run, ...found };
  });
}

function predicted(
  program: Program,
  isRun: boolean,
  graph: boolean,
  profile: MachineProfile,
): IntervalRun & Pick<PredictedRun, "perInUse"> {
  const simulated = { program, ...simulate(program, profile, { graph }) };
  const { milliseconds, path, loopedGemms, besideGemms, assumptions } = explainRun(simulated, profile, {
    serial: null,
    graph,
  });
  const slopeOf = (slower: MachineProfile): number =>
    (simulate(program, slower, { graph }).milliseconds - milliseconds) / step;
  const perInUse = {
    gemms: slopeOf(withGemms(profile, 1 + step)),
    memory: slopeOf(withMemory(profile, 1 + step)),
    start: runCost(program, profile) > profile.costs.run ? 0.001 : 0,
  };
  const shared = { loopedGemms, besideGemms, assumptions, perInUse };
  if (isRun) return { milliseconds, path, ...shared };
  return { milliseconds: milliseconds - path.host, path: { ...path, host: 0 }, ...shared };
}

const step = 0.01;

function withGemms(profile: MachineProfile, factor: number): MachineProfile {
  const slower = (rates: readonly number[]): readonly number[] => rates.map((rate) => rate / factor);
  return { ...profile, products: profile.products.map((grid) => ({ ...grid, teraflops: slower(grid.teraflops) })) };
}

function withMemory(profile: MachineProfile, factor: number): MachineProfile {
  const slower = (timings: readonly Timing[]): readonly Timing[] =>
    timings.map(({ bytes, microseconds }) => ({ bytes, microseconds: microseconds * factor }));
  const { memory, localCopies, reductions = [] } = profile;
  return {
    ...profile,
    memory: slower(memory),
    localCopies: slower(localCopies),
    reductions: reductions.map((each) => ({ ...each, timings: slower(each.timings) })),
  };
}

function shippedProfile(name: MeasuredProfile): MachineProfile {
  const file = new URL(`../../profiles/${name}.json`, import.meta.url);
  return parseProfile(readFileSync(file, "utf8"), `${name}.json`);
}
