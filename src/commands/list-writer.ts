/** The list of a rank under construction, and transfers whose commands it moves. */
import type { Command, Origin, TransferId } from "./command.ts";
import type { LinkedTransfer } from "./program.ts";

export interface ListWriter {
  readonly list: {
    readonly commands: Command[];
    readonly origins: Origin[];
    readonly transferOf: (TransferId | null)[];
  };
  readonly add: (command: Command, origin: Origin, transfer?: TransferId | null) => void;
}

export function createListWriter(): ListWriter {
  const list: ListWriter["list"] = { commands: [], origins: [], transferOf: [] };
  return {
    list,
    add: (command, origin, transfer = null) => {
      list.commands.push(command);
      list.origins.push(origin);
      list.transferOf.push(transfer);
    },
  };
}

/** The transfer, with the commands of its participants at new positions. */
export function movedTransfer(
  transfer: LinkedTransfer,
  to: (rank: number, position: number) => number,
): LinkedTransfer {
  if (transfer.participants.length === 0) return transfer;
  const participants = transfer.participants.map((each) => ({ ...each, command: to(each.rank, each.command) }));
  return { ...transfer, participants };
}
