/** Issues a prepared list in order. An error names the command it belongs to. */
import { at } from "../../../support/invariant.ts";
import { failedAt } from "../bindings/call-error.ts";
import { commandPlace, type ListNotes } from "../ops/list-notes.ts";
import type { Communicator } from "../nccl/communicators.ts";
import type { Session } from "../session.ts";
import type { Flight } from "../../flight/flight-recorder.ts";
import { postFlight } from "../../../trace/flight/flight-words.ts";
import type { Action } from "../bind/bind-op.ts";
import { type Deadline, waitUntil } from "./stuck/wait.ts";

export interface Enqueued {
  readonly actions: readonly Action[];
  /** commandOf[i] is the command of actions[i]. */
  readonly commandOf: Int32Array;
  readonly flight: Pick<Flight, "words">;
  /** Whether the last action left NCCL working in the background; checked after each action. */
  readonly busy: { communicator: Communicator | null };
}

/** Resolves when everything is with the driver. Waits only where NCCL continues a call in the background. */
export async function enqueueList(
  session: Session,
  notes: ListNotes,
  list: Enqueued,
  deadline: Deadline,
): Promise<void> {
  const { busy } = list;
  for (let next = 0; next < list.actions.length;) {
    next = runActions(notes, list, next);
    const { communicator } = busy;
    busy.communicator = null;
    if (communicator !== null) await waitUntil(() => !session.communicators().isBusy(communicator), deadline);
  }
  // Joined actions have the number of their first command.
  postFlight(at(list.flight.words, 0), notes.commandCount);
}

/** Runs actions from `first` up to and including one that leaves NCCL busy. Returns the number of the next action. */
function runActions(notes: ListNotes, { actions, commandOf, busy, flight }: Enqueued, first: number): number {
  const words = at(flight.words, 0);
  let i = first;
  try {
    while (i < actions.length && busy.communicator === null) {
      actions[i]?.();
      const command = commandOf[i] ?? -1;
      if (command >= 0) postFlight(words, command + 1);
      i++;
    }
    return i;
  } catch (error) {
    throw failedAt(error, commandPlace(notes, commandOf[i] ?? -1));
  }
}
