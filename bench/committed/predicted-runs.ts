/** All committed runs, each with its predicted time on the profile of its machine. */
import { readFileSync } from "node:fs";
import { explainRun } from "../../src/explain/explain-run.ts";
import type { ByClass } from "../../src/simulate/command-class.ts";
import type { MachineProfile } from "../../src/simulate/machine-profile.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { simulate } from "../../src/simulate/simulate.ts";
import { benchRuns } from "./bench-runs.ts";
import type { CommittedRun } from "./committed-run.ts";
import { mlpRuns, normRuns } from "./other-runs.ts";
import { speedRuns } from "./speed-runs.ts";

export interface PredictedRun {
  readonly source: string;
  readonly text: string;
  readonly graph: boolean;
  /** Both in milliseconds. */
  readonly measured: number;
  readonly predicted: number;
  /** The parts of `predicted`. */
  readonly path: ByClass;
}

/** `profileOf`: the profile to predict with, by the name of the machine's own. */
export function predictedRuns(profileOf = shippedProfile): readonly PredictedRun[] {
  const profiles = { "2xH200": profileOf("2xH200"), "4xH200": profileOf("4xH200") };
  return [...benchRuns(), ...speedRuns(), ...mlpRuns(), ...normRuns()].map((run) =>
    predicted(run, profiles[run.profile]),
  );
}

function predicted(
  { source, text, program, graph, measured, isRun }: CommittedRun,
  profile: MachineProfile,
): PredictedRun {
  const simulated = { program, ...simulate(program, profile, { graph }) };
  const { milliseconds, path } = explainRun(simulated, profile, { serial: null, graph });
  if (isRun) return { source, text, graph, measured, predicted: milliseconds, path };
  const kernels = milliseconds - path.host;
  return { source, text, graph, measured, predicted: kernels, path: { ...path, host: 0 } };
}

function shippedProfile(name: string): MachineProfile {
  const file = new URL(`../../profiles/${name}.json`, import.meta.url);
  return parseProfile(readFileSync(file, "utf8"), `${name}.json`);
}
