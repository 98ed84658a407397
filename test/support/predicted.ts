/** What the simulator says of a program: its time, what it exposes, and its memory. */
import { expect } from "vitest";
import { compile, type CompileOptions, type Fusion, type MachineProfile, simulate } from "@braid-compiler/braid";
import { at } from "../../src/support/invariant.ts";
import { overlapOf } from "../../src/trace/overlap.ts";

export interface Predicted {
  /** Milliseconds in which rank 0 communicates and runs no kernel. */
  readonly exposed: number;
  readonly milliseconds: number;
  /** Megabytes of rank 0's temporaries at their peak. */
  readonly peak: number;
}

/** The program must have no finding that is an error. */
export function predicted(
  fusion: Fusion,
  options: CompileOptions & { readonly verify?: "on" },
  profile: MachineProfile,
): Predicted {
  const { program, report } = compile(fusion, options);
  expect(report.findings.filter(({ severity }) => severity === "error")).toEqual([]);
  const { trace, milliseconds } = simulate(program, profile, { graph: true });
  const { communication, hidden } = at(overlapOf(program, trace), 0);
  return { exposed: communication - hidden, milliseconds, peak: at(program.ranks, 0).arenaBytes.temporary / 1e6 };
}
