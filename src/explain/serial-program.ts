/** The program that others are compared with: a whole collective, then a whole GEMM. */
import type { Program } from "../commands/program.ts";
import { compile } from "../compile/compile.ts";
import { isFusionSource, type ProgramSource } from "../compile/lower-all.ts";
import { DiagnosticError } from "../diagnostics/diagnostic.ts";
import { serial } from "../tune/choose/candidates.ts";
import type { ChooseOptions } from "../tune/choose/consider.ts";

/**
 * The serial form of the first ranks, which are all or replicas, in the library's collectives whatever the options say;
 * null where there is none.
 */
export function serialOf(source: ProgramSource, options: ChooseOptions, ranks = options.devices): Program | null {
  if (!isFusionSource(source)) return null;
  try {
    const { lowering, schedule } = serial;
    // The library takes none.
    const { protocol: _, ...others } = options;
    const oneReplica = ranks < options.devices && ranks;
    const given = { ...others, ...lowering, schedule, streams: 1, oneReplica, verify: "off" } as const;
    const { program } = compile(source, given);
    return program.ranks.length === ranks ? program : null;
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}
