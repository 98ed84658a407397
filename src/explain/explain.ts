/**
 * Explains a program on the machine of a profile, without running it: its predicted time, what communication stays
 * exposed and why, against the serial form of the same program (a whole collective, then a whole GEMM).
 */
import { type AnyCompilation, compile, loweringOf, verified } from "../compile/compile.ts";
import { isFusionSource, type ProgramSource } from "../compile/lower-all.ts";
import { reshardings } from "../compile/reshardings.ts";
import { DiagnosticError } from "../diagnostics/diagnostic.ts";
import type { Resharding } from "../passes/reshard/list-reshardings.ts";
import type { MachineProfile } from "../simulate/machine-profile.ts";
import { simulate } from "../simulate/simulate.ts";
import { serial as serialForm } from "../tune/choose/candidates.ts";
import { choose } from "../tune/choose/choose.ts";
import type { ChooseOptions } from "../tune/choose/consider.ts";
import type { ScheduleChoice } from "../tune/choose/schedule-choice.ts";
import { type ExplainedRun, explainRun } from "./explain-run.ts";

export interface ExplainOptions extends ChooseOptions {
  /** "auto": explains the schedule that is predicted to be the fastest. "given" if omitted. */
  readonly scheduleChoice?: "given" | "auto";
}

export interface Explanation {
  readonly compilation: AnyCompilation;
  /** All candidates, with `scheduleChoice: "auto"`. */
  readonly choice: ScheduleChoice<AnyCompilation> | null;
  readonly run: ExplainedRun;
  /** Predicted milliseconds of the serial form; null for host programs, and if it cannot be lowered. */
  readonly serial: number | null;
  /** What moves between devices, and why; null for host programs. */
  readonly reshardings: readonly Resharding[] | null;
  /** Bytes of inputs, outputs and temporaries of the rank that needs the most. */
  readonly peakBytes: number;
}

/** Throws what `compile` and, with `scheduleChoice: "auto"`, `choose` throw. */
export function explain(
  source: ProgramSource,
  { scheduleChoice = "given", graph = true, ...options }: ExplainOptions,
  profile: MachineProfile,
): Explanation {
  const choice = scheduleChoice === "auto" ? choose(source, { ...options, graph, verify: "off" }, profile) : null;
  const unverified = choice?.compilation ?? compile(source, { ...options, verify: "off" });
  const compilation = options.verify === "off" ? unverified : verified(unverified);
  const serial = serialOf(source, options);
  const { program, sizes } = compilation;
  const run = explainRun({ program, ...simulate(program, profile, { graph }) }, profile, {
    serial: serial?.program ?? null,
    graph,
  });
  const bytes = program.ranks.map(({ arenaBytes }) => Object.values(arenaBytes).reduce((sum, each) => sum + each, 0));
  return {
    compilation,
    choice,
    run,
    serial: serial === null ? null : simulate(serial.program, profile, { graph }).milliseconds,
    reshardings: isFusionSource(source) ? reshardings(source, { ...loweringOf(compilation.options), sizes }) : null,
    peakBytes: Math.max(...bytes),
  };
}

/** The serial form, in the library's collectives whatever the options say; null where there is none. */
function serialOf(source: ProgramSource, options: ChooseOptions): AnyCompilation | null {
  if (!isFusionSource(source)) return null;
  try {
    const { lowering, schedule } = serialForm;
    return compile(source, { ...options, ...lowering, schedule, streams: 1, verify: "off" });
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}
