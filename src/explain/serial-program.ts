/** The program that others are compared with: a whole collective, then a whole GEMM. */
import type { Program } from "../commands/program.ts";
import { compileFirstRanks } from "../compile/compile.ts";
import { isFusionSource, type ProgramSource } from "../compile/lower-all.ts";
import { DiagnosticError } from "../diagnostics/diagnostic.ts";
import { serial } from "../tune/choose/candidates.ts";
import type { ChooseOptions } from "../tune/choose/consider.ts";

/** The serial form of the first ranks, in the library's collectives whatever the options say; null where there is none. */
export function serialOf(source: ProgramSource, options: ChooseOptions, ranks = options.devices): Program | null {
  if (!isFusionSource(source)) return null;
  try {
    const { lowering, schedule } = serial;
    // The library takes none.
    const { protocol: _, ...others } = options;
    return compileFirstRanks(source, { ...others, ...lowering, schedule, streams: 1 }, ranks);
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}
