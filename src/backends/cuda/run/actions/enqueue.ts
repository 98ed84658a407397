/** Issues a prepared list in order. An error names the command it belongs to. */
import { commandDetails } from "../../../../commands/command-text.ts";
import type { Program } from "../../../../commands/program.ts";
import type { Place } from "../../../../diagnostics/diagnostic.ts";
import { at } from "../../../../support/invariant.ts";
import { failedAt } from "../../bindings/call-error.ts";
import type { Communicator } from "../../nccl/communicators.ts";
import type { Session } from "../../session.ts";
import type { Flight } from "../../../flight/flight-recorder.ts";
import { postFlight } from "../../../../trace/flight/flight-words.ts";
import type { Action } from "./action-context.ts";
import { type Deadline, waitUntil } from "../stuck/wait.ts";

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
  program: Program,
  list: Enqueued,
  deadline: Deadline,
): Promise<void> {
  const { busy } = list;
  for (let next = 0; next < list.actions.length;) {
    next = runActions(session, program, list, next);
    const { communicator } = busy;
    busy.communicator = null;
    if (communicator !== null) await waitUntil(() => !session.communicators().isBusy(communicator), deadline);
  }
  // Joined actions have the number of their first command.
  postFlight(at(list.flight.words, 0), at(program.ranks, session.gpu.rank).commands.length);
}

/** Runs actions from `first` up to and including one that leaves NCCL busy. Returns the number of the next action. */
function runActions(
  session: Session,
  program: Program,
  { actions, commandOf, busy, flight }: Enqueued,
  first: number,
): number {
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
    throw failedAt(error, placeOf(program, session.gpu.rank, commandOf[i] ?? -1));
  }
}

/** `index` -1 stands for an edge that the back end added. */
function placeOf(program: Program, rank: number, index: number): Place {
  const own = at(program.ranks, rank);
  if (index < 0) return { kind: "command", rank, stream: 0, text: "an edge at the start or end of the list" };
  const command = at(own.commands, index);
  const { statement } = at(own.origins, index);
  const text = `command ${index}, ${command.kind} ${commandDetails(own, index)}, of ${statement}`;
  return { kind: "command", rank, stream: command.stream, text };
}
