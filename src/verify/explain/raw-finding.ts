/**
 * A finding before findings of equal statements are joined and counterexamples are added. Its commands are still visits
 * of nodes.
 */
import type { DiagnosticCode } from "../../diagnostics/codes.ts";
import type { SharedMemory } from "../finding.ts";

export interface RawFinding {
  readonly code: DiagnosticCode;
  readonly severity: "error" | "warning" | "note";
  readonly message: string;
  /** The visits involved; the finding is reported at the last. */
  readonly visits: readonly number[];
  /** The mistakes of equal statements that it stands for, if there are more than one. */
  readonly occurrences?: number;
  readonly memory: SharedMemory | null;
  readonly found: string;
  readonly expected: string;
  readonly help: string;
  readonly notes: readonly string[];
  /** The order that would repair it: both visits, in that order; null if no order does. */
  readonly edge: readonly [number, number] | null;
}
