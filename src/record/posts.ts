/** What Wait finds: how the latest post of a communication is awaited. */
import type { CommandStreamId, EventId } from "../commands/command.ts";

export type Post =
  /** This rank has no part in it, or its wait is nothing. */
  | { readonly kind: "nothing" }
  /** A library's transfer: done when the event is. */
  | { readonly kind: "event"; readonly event: EventId }
  /** A one-sided half whose peer signals `done`. */
  | { readonly kind: "signal"; readonly pair: number }
  /** As `signal`, after a Wait has taken the signal on `stream`. */
  | { readonly kind: "taken"; readonly stream: CommandStreamId };
