/**
 * Which stream's kernels and copies go first where a multiprocessor or an engine is free. Copies and communication do: they are few, and other ranks wait for
 * them. Of products on several streams those on the first of them, as the list has them: copies behind them wait in that order, and a GPU that began with the
 * second would hold all of them up.
 */
import type { StreamInfo } from "../../../../commands/command.ts";
import type { StreamPriority } from "./stream-pool.ts";

export function streamPriorities(streams: readonly Pick<StreamInfo, "role">[]): readonly StreamPriority[] {
  let workers = 0;
  return streams.map(({ role }) => {
    if (role === "lane" || role === "communicator") return 0;
    return role === "caller" ? 1 : ++workers;
  });
}
