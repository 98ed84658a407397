/**
 * Channels: what processes send each other in a run. A message leaves when a slot of its process is signalled, or as the
 * answer to another message; its arrival signals slots of the receiving process. All processes number channels alike.
 */
import type { SlotId } from "../../../commands/command.ts";
import type { View } from "../../../commands/view.ts";

export interface Channel {
  /** The tag of its messages. */
  readonly id: number;
  readonly from: number;
  readonly to: number;
  /** The slot whose signal sends a message; null if it answers another channel. */
  readonly raise: SlotId | null;
  /** Messages in a run. */
  readonly count: number;
  /** Read by the sender, and written by the receiver: of one shape and dtype. Null for a message without data. */
  readonly payload: Payload | null;
  /** Signalled in the sending process when a message has left, so that its source may change; null for none. */
  readonly sent: SlotId | null;
  /** The slot whose signal lets a message arrive, because its destination is in use before; null for any time. */
  readonly ready: SlotId | null;
  /** Signalled when a message has arrived. */
  readonly slots: readonly SlotId[];
  /** The channel whose message answers; null for none. */
  readonly reply: number | null;
}

export interface Payload {
  readonly source: View;
  readonly destination: View;
}
