/**
 * Chooses which stream goes first when an SM or a copy engine becomes free. Copies and communication do: they are few,
 * and other ranks wait for them. GEMMs on compute stream 0 have higher priority than those on stream 1. Copies wait for
 * results in stream order, so a GPU that started with stream 1 would delay every copy.
 */
import type { StreamInfo } from "../../../../commands/command.ts";
import type { StreamPriority } from "./stream-pool.ts";

export function streamPriorities(streams: readonly Pick<StreamInfo, "role">[]): readonly StreamPriority[] {
  let workers = 0;
  return streams.map(({ role }) => {
    if (role === "copy" || role === "communicator") return 0;
    return role === "caller" ? 1 : ++workers;
  });
}
