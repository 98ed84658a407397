/**
 * Finds kernels that follow something that is not a kernel: a copy of another stream, a signal, or a wait for one.
 * Other engines of the device execute those. The hand-over to a kernel takes some microseconds, even if they finished
 * long before.
 *
 *     copies: copy, signal, record e        caller: GEMM, wait e, GEMM    <- the second GEMM
 */
import type { EventId } from "../commands/command.ts";
import type { RankProgram } from "../commands/program.ts";
import { at } from "../support/invariant.ts";
import { unreachable } from "../support/unreachable.ts";

/** By position in the list of a rank: 1 for such launches. `inKernel` has 1 for signals and waits inside kernels. */
export function joinsOf({ commands, streams }: RankProgram, inKernel: Uint8Array): Uint8Array {
  /** Per stream: whether the last thing it did or waited for was not a kernel. */
  const isForeign = streams.map(() => false);
  const foreignEvents = new Set<EventId>();
  const joins = new Uint8Array(commands.length);
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
        if (inKernel[index] !== 1) isForeign[stream] = true;
        break;
      case "launch":
        if (at(isForeign, stream)) joins[index] = 1;
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
