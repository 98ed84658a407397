/** A library's transfer on its communicator's stream. */
import type { Collective, PointToPointGroup } from "../../commands/transfer.ts";
import type { Post } from "../posts.ts";
import type { Recorder } from "../recorder.ts";
import { communicatorStream, order, recordOn } from "../streams.ts";
import { emit } from "../tape.ts";

/** Posts `operation` on the communicator's stream, after what the current stream holds. */
export function transfer(
  { streams, tape }: Recorder,
  communicator: string,
  operation: Collective | PointToPointGroup,
): Post {
  const stream = communicatorStream(streams, communicator);
  order(streams, streams.current, stream);
  emit(tape, { kind: "transfer", stream, communicator, operation });
  return { kind: "event", event: recordOn(tape, stream) };
}
