/**
 * Compiles the source of an executor: host programs of all ranks, and the Program if it is known before the first run.
 */
import {
  type AnyCompilation,
  compile,
  type CompileOptions,
  loweringOf,
  requireVerified,
  verified,
} from "../compile/compile.ts";
import type { Schedule } from "../compile/options/schedule.ts";
import { type Lowered, lowerAll, type ProgramSource } from "../compile/lower-all.ts";
import type { DiagnosticCode } from "../diagnostics/codes.ts";
import { DiagnosticError } from "../diagnostics/diagnostic.ts";
import type { MachineProfile } from "../simulate/machine-profile.ts";
import { chooseFor } from "../tune/choose/choose.ts";
import type { ScheduleChoice } from "../tune/choose/schedule-choice.ts";

export interface CompiledSource {
  readonly lowered: Lowered;
  /** Options for compiling with sizes that only a run knows. */
  readonly options: CompileOptions;
  /** Null if a run has to give sizes or scalars. */
  readonly compilation: AnyCompilation | null;
  readonly choice: ScheduleChoice<AnyCompilation> | null;
}

/**
 * A Compilation keeps its own options. Throws what `compile` and `choose` throw, and the verifier's findings.
 */
export function compileSource(
  source: ProgramSource | AnyCompilation,
  options: CompileOptions,
  schedule: Schedule | undefined,
  profile: MachineProfile | null,
): CompiledSource {
  if (isCompilation(source)) return known(source, options, null);
  const choice = chooseFor(schedule, source, { ...options, verify: "off" }, profile);
  if (choice !== null) return known(choice.compilation, options, choice);
  const lowered = lowerAll(source, { devices: options.devices, ...loweringOf(options) });
  return { lowered, options, compilation: compileIfConstant(lowered, options), choice: null };
}

/** Throws the verifier's findings, unless `verify` is off. */
export function compileToRun(source: ProgramSource | Lowered, options: CompileOptions): AnyCompilation {
  return requireVerified(compile(source, { ...options, notes: false }));
}

function known(
  compilation: AnyCompilation,
  { devices, verify = "on", onProgress }: CompileOptions,
  choice: CompiledSource["choice"],
): CompiledSource {
  const lowered = lowerAll(compilation, { devices });
  if (verify !== "off") {
    const listening = onProgress === undefined ? {} : { onProgress };
    const verifying = { notes: false, full: verify === "full", ...listening };
    requireVerified(compilation.report === null ? verified(compilation, verifying) : compilation);
  }
  return { lowered, options: { ...compilation.options, verify }, compilation, choice };
}

/** A run may provide these later. */
const givenByRuns: readonly DiagnosticCode[] = ["size-missing", "scalar-missing"];

function compileIfConstant(lowered: Lowered, options: CompileOptions): AnyCompilation | null {
  try {
    return compileToRun(lowered, options);
  } catch (error) {
    if (error instanceof DiagnosticError && error.diagnostics.every(({ code }) => givenByRuns.includes(code))) {
      return null;
    }
    throw error;
  }
}

function isCompilation(source: ProgramSource | AnyCompilation): source is AnyCompilation {
  return typeof source === "object" && "recorded" in source;
}
