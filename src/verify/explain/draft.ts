/** A finding in the making: its commands still as visits of nodes, before equal ones are joined and counterexamples are added. */
import type { DiagnosticCode } from "../../diagnostics/codes.ts";
import type { SharedMemory } from "../finding.ts";

export interface Draft {
  readonly code: DiagnosticCode;
  readonly severity: "error" | "note";
  readonly message: string;
  /** The visits that it is about; the last is where it is reported. */
  readonly visits: readonly number[];
  readonly memory: SharedMemory | null;
  readonly found: string;
  readonly expected: string;
  readonly help: string;
  readonly notes: readonly string[];
  /** The order that would mend it: both visits, in that order; null where no order does. */
  readonly edge: readonly [number, number] | null;
}
