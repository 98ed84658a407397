/** The priorities of a list's streams. */
import type { StreamInfo } from "../../../commands/command.ts";

/**
 * Chooses which stream runs first when an SM or a copy engine becomes free. Copies and communication do: they are few,
 * and other ranks wait for them. GEMMs on compute stream 0 have higher priority than those on stream 1. Copies wait for
 * results in stream order, so a GPU that started with stream 1 would delay every copy.
 */
export function streamPriorities(streams: readonly Pick<StreamInfo, "role">[]): readonly number[] {
  let workers = 0;
  return streams.map(({ role }) => {
    if (role === "worker") return ++workers;
    return role === "caller" ? 1 : 0;
  });
}
