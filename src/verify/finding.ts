/**
 * Findings: Diagnostics of the verifier, with what they say also as data. An error makes a Program wrong: there is an order of its commands,
 * allowed by its edges, in which it computes something else, stops for ever, or breaks a rule that back ends rely on. A note says
 * what costs time or memory.
 */
import type { Diagnostic } from "../diagnostics/diagnostic.ts";

/** A command, or what a caller does before or after a run. */
export interface CommandPlace {
  readonly rank: number;
  readonly stream: number;
  /** As the stream is called: `worker 2`. */
  readonly streamName: string;
  /** The position in the rank's list; null for the caller. */
  readonly command: number | null;
  /** The command's kind, or what the caller does. */
  readonly kind: string;
  /** As printed. */
  readonly statement: string;
  /** Positions in the host program's body; empty where none is known. */
  readonly path: readonly number[];
  /** Values of the enclosing loops' indices. */
  readonly iteration: readonly number[];
  /** Of the rank's dump, where the statement begins; null where it is not known. */
  readonly line: number | null;
  /** 1 or 2: of two consecutive runs. */
  readonly run: number;
}

/** The bytes that two commands share, or that a read lacks. */
export interface SharedMemory {
  readonly rank: number;
  /** `T3`. */
  readonly tensor: string;
  /** As a slice of the tensor on its rank: `T3[2, 0:4, :]`, or as bytes where it is no slice. */
  readonly slice: string;
  readonly bytes: number;
}

/** An order between two commands, made by an event on one rank, by a signal between ranks. */
export interface OrderEdge {
  readonly from: CommandPlace;
  readonly to: CommandPlace;
}

export interface Finding extends Diagnostic {
  readonly severity: "error" | "note";
  /** The commands that it is about: of a race both, of a deadlock those of the cycle. */
  readonly commands: readonly CommandPlace[];
  /** How many commands, or pairs of them, of the same statements it stands for. */
  readonly occurrences: number;
  readonly memory: SharedMemory | null;
  /** The last command that both come after. */
  readonly ancestor: CommandPlace | null;
  /** The order that is missing. */
  readonly missingEdge: OrderEdge | null;
  /**
   * Text for `braid run --schedule`, under which the second command comes before the first; of a read of what nothing wrote any one, as every
   * order shows it; null where one run cannot show it.
   */
  readonly schedule: string | null;
}

/** A command to put into a list, so that with all such steps the Program verifies. */
export interface RepairStep {
  readonly rank: number;
  readonly stream: number;
  /** Before the command that now stands at this place of the rank's list; the list's length stands for its end. */
  readonly before: number;
  /** `waitEvent e5`. */
  readonly command: string;
  /** All of it in one line. */
  readonly text: string;
}
