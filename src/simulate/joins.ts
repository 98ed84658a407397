/**
 * Which kernels begin behind something that no kernel does: a copy of another stream, a signal, or the wait for one. Engines of the device that
 * are not the one for kernels do those, and from them to a kernel takes some microseconds, however long ago they were done.
 *
 *     lane: copy, signal, record e        caller: product, wait e, product    <- the second product
 */
import type { EventId } from "../commands/command.ts";
import type { RankProgram } from "../commands/program.ts";
import { at } from "../support/invariant.ts";
import { unreachable } from "../support/unreachable.ts";

/** Positions of such launches in the list of a rank. `inKernel`: positions of signals and waits that a kernel does. */
export function joinsOf(
  { commands, streams }: RankProgram,
  inKernel: ReadonlySet<number> = new Set(),
): ReadonlySet<number> {
  /** Per stream: whether what it did or waited for last was no kernel's. */
  const isForeign = streams.map(() => false);
  const foreignEvents = new Set<EventId>();
  const joins = new Set<number>();
  for (const [index, command] of commands.entries()) {
    const { stream } = command;
    switch (command.kind) {
      case "alloc":
      case "free":
        break;
      case "recordEvent":
        if (at(isForeign, stream)) foreignEvents.add(command.event);
        break;
      case "waitEvent":
        if (foreignEvents.has(command.event)) isForeign[stream] = true;
        break;
      case "copy":
      case "signal":
      case "waitSignal":
        if (!inKernel.has(index)) isForeign[stream] = true;
        break;
      case "launch":
        if (at(isForeign, stream)) joins.add(index);
        isForeign[stream] = false;
        break;
      case "transfer":
        isForeign[stream] = false;
        break;
      default:
        unreachable(command);
    }
  }
  return joins;
}
