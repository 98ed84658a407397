/** What Wait finds: how the latest post of a communication is awaited. */
import type { CommandStreamId, EventId } from "../commands/command.ts";
import type { WaitRank, WaitPeer } from "../commands/command-list.ts";

export type Post =
  /** A Wait has been posted for it. */
  | { readonly kind: "awaited" }
  /** This rank has no part in it. */
  | { readonly kind: "nothing" }
  /** A library's transfer: done when the event is. */
  | { readonly kind: "event"; readonly event: EventId }
  /** One-sided: done when peers have signalled, and what `stream` holds is; null where this rank has done nothing but signal. */
  | { readonly kind: "signals"; readonly stream: CommandStreamId | null; readonly signals: readonly AwaitedSignal[] }
  /** Done when what the stream holds is: no peer is waited for, or a Wait on that stream has taken their signals. */
  | { readonly kind: "stream"; readonly stream: CommandStreamId };

/** A wait that goes on the stream that is current at the Wait. */
export type AwaitedSignal = Omit<WaitPeer, "stream"> | Omit<WaitRank, "stream">;
