/**
 * Findings: the verifier's Diagnostics, with their content also as data. An error makes a Program wrong: its edges
 * allow an order of its commands in which it computes another result, never ends, or breaks a rule that back ends rely
 * on. A warning reports what may be wrong. A note reports a cost in time or memory.
 */
import type { Diagnostic } from "../diagnostics/diagnostic.ts";

/** A command, or an action of the caller before or after a run. */
export interface CommandPlace {
  readonly rank: number;
  readonly stream: number;
  /** The stream's name: `worker 2`. */
  readonly streamName: string;
  /** The position in the rank's list; null for the caller. */
  readonly command: number | null;
  /** The kind of the command or of the caller's action. */
  readonly kind: string;
  /** As printed. */
  readonly statement: string;
  /** Positions in the host program's body; empty if unknown. */
  readonly path: readonly number[];
  /** Values of the enclosing loops' indices. */
  readonly iteration: readonly number[];
  /** The line of the rank's dump on which the statement begins; null if unknown. */
  readonly line: number | null;
  /** 1 or 2, of two consecutive runs. */
  readonly run: number;
}

/** The bytes that two commands share, or that a read lacks. */
export interface SharedMemory {
  readonly rank: number;
  /** `T3`. */
  readonly tensor: string;
  /** As a slice of the tensor on its rank: `T3[2, 0:4, :]`, or as bytes if it is not a slice. */
  readonly slice: string;
  readonly bytes: number;
}

/** An order between two commands: an event on one rank, a signal between ranks. */
export interface OrderEdge {
  readonly from: CommandPlace;
  readonly to: CommandPlace;
}

export interface Finding extends Diagnostic {
  readonly severity: "error" | "warning" | "note";
  /** The commands involved: both of a race, those of the cycle of a deadlock. */
  readonly commands: readonly CommandPlace[];
  /** The number of commands, or pairs of commands, of the same statements that this finding covers. */
  readonly occurrences: number;
  readonly memory: SharedMemory | null;
  /** The last command that precedes both. */
  readonly ancestor: CommandPlace | null;
  readonly missingEdge: OrderEdge | null;
  /**
   * Text for `braid run --interleaving` that runs the second command before the first. For a read of unwritten bytes,
   * any interleaving shows the finding. Null if one run cannot show it.
   */
  readonly interleaving: string | null;
}
