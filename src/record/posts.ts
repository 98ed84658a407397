/** What a Wait finds of a communication: how its latest post completes. */
import type { WaitPeer, WaitRank } from "../commands/command-list.ts";
import type { CommandStreamId, EventId } from "../commands/command.ts";
import type { Collective, PointToPointGroup } from "../commands/transfer.ts";
import { communicatorStream, order, recordOn, type Streams } from "./streams.ts";
import { emit } from "./tape.ts";

export type Post =
  /** Its one Wait has been recorded. */
  | { readonly kind: "awaited" }
  /** This rank takes no part. */
  | { readonly kind: "nothing" }
  /** A library's transfer completes with the event. */
  | { readonly kind: "event"; readonly event: EventId }
  /**
   * One-sided: completes when peers have signalled and `stream` is done; `stream` is null where this rank only
   * signalled.
   */
  | { readonly kind: "signals"; readonly stream: CommandStreamId | null; readonly signals: readonly AwaitedSignal[] }
  /** Completes with what the stream holds: no peer is waited for, or a Wait on that stream has taken the signals. */
  | { readonly kind: "stream"; readonly stream: CommandStreamId };

/** A wait that is issued on the stream that is current at the Wait. */
export type AwaitedSignal = Omit<WaitPeer, "stream"> | Omit<WaitRank, "stream">;

/** Posts a library's transfer on the communicator's stream, after what the current stream holds. */
export function postTransfer(streams: Streams, communicator: string, operation: Collective | PointToPointGroup): Post {
  const stream = communicatorStream(streams, communicator);
  order(streams, streams.current, stream);
  emit(streams.tape, { kind: "transfer", stream, communicator, operation });
  return { kind: "event", event: recordOn(streams.tape, stream) };
}
