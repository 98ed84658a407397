/**
 * Kernels in peers' memory beside GEMMs that leave no SMs free on purpose: whether such a kernel finds SMs is up to the
 * library's kernel for the GEMM, and the profile has it for few of them.
 */
import type { Program } from "../commands/program.ts";
import { commandClassOf } from "../simulate/command-class.ts";
import { measuredMargin } from "../simulate/machine-profile.ts";
import { at } from "../support/invariant.ts";
import type { TraceEvent } from "../trace/event.ts";
import type { Timing } from "./idle/timing.ts";

/**
 * Milliseconds of the rank's kernels in peers' memory that run beside a GEMM without an SM margin, or wait while one runs:
 * if they found SMs, they would run then.
 */
export function timeBesideGemms(
  program: Program,
  trace: readonly TraceEvent[],
  { dependences, ready }: Timing,
  rank: number,
): number {
  const { commands } = at(program.ranks, rank);
  const launches = trace.filter((event) => event.rank === rank && at(commands, event.command).kind === "launch");
  const ofClass = (of: string): readonly TraceEvent[] =>
    launches.filter(({ command }) => commandClassOf(program, rank, command) === of);
  const gemms = ofClass("gemms").filter(({ command }) => hasNoMargin(program, rank, command));
  return ofClass("reductionsInPeers").reduce((sum, { command, start, end }) => {
    const from = Math.min(start, at(ready, at(dependences.first, rank) + command));
    const beside = gemms.reduce(
      (time, gemm) => time + Math.max(0, Math.min(end, gemm.end) - Math.max(from, gemm.start)),
      0,
    );
    return sum + Math.min(end - start, beside);
  }, 0);
}

function hasNoMargin({ ranks }: Program, rank: number, index: number): boolean {
  const command = at(at(ranks, rank).commands, index);
  return command.kind === "launch" && (command.smMargin ?? 0) < measuredMargin;
}
