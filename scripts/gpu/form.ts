/** What form-times.ts times: problems, each in the forms that are compared. */
import type { Prepared } from "../../src/backends/backend.ts";
import type { Program } from "../../src/commands/program.ts";
import type { MachineProfile } from "../../src/simulate/machine-profile.ts";

/** One way to compute a problem. */
export interface Form {
  readonly name: string;
  readonly program: Program;
  /** Milliseconds by the profile; null without one. */
  readonly predicted: number | null;
  /** Writes a rank's inputs: the same values in every form of a problem. */
  readonly write: (prepared: Prepared, rank: number) => void;
}

export interface Problem {
  readonly name: string;
  /** The number of GPUs that it takes; any if omitted. */
  readonly devices?: number;
  readonly forms: (profile: MachineProfile | null, devices: number) => readonly Form[];
}
