/**
 * What the bench needs to know of a problem: how Braid's implementations are compiled for it, what they read, and
 * whether their results are right.
 */
import type { Prepared } from "../../src/backends/backend.ts";
import type { Program } from "../../src/commands/program.ts";
import type { Target } from "../../src/compile/compile.ts";
import type { MachineProfile } from "../../src/simulate/machine-profile.ts";
import type { Outcome } from "../../src/launch/exchange.ts";
import type { Implementation } from "./implementation.ts";
import type { TracingOptions } from "./traced-run.ts";

export type OwnImplementation = Extract<Implementation, { readonly kind: "braid" }>;

/** Settings that all implementations share: the back end and the machine profile. */
export interface Setting {
  readonly on: Target;
  readonly profile: MachineProfile | null;
}

/** The Program that runs. */
export interface PlannedProgram {
  readonly implementation: OwnImplementation;
  readonly program: Program;
  /** The reason for its schedule; null if the schedule was given. */
  readonly reason: string | null;
}

/** A Program with its inputs and the check of its results. */
export interface Ready extends PlannedProgram {
  /** How its run is to be explained; null if it is not. */
  readonly tracing: Pick<TracingOptions, "profile" | "serial"> | null;
  /** The bytes of input number `position` on a device. */
  readonly input: (position: number, rank: number) => Uint8Array;
  /** The largest error over its bound, for the outputs of these ranks; null if there is nothing to compare with. */
  readonly check: (prepared: Prepared, ranks: readonly number[]) => Promise<Outcome<number | null>>;
}

export interface Workload {
  /** Throws what lowering, recording, linking and the verifier throw: not every combination of options is possible. */
  readonly plan: (implementation: OwnImplementation) => Ready;
  /** The request that sets PyTorch's process up. */
  readonly setup: () => Readonly<Record<string, unknown>>;
}
