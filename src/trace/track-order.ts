/** The order in which pictures of a run show a rank's streams: those of the user first, then those of the library. */
import type { StreamInfo } from "../commands/command.ts";

const roles: readonly StreamInfo["role"][] = ["caller", "worker", "communicator", "pair", "copy"];

export function inTrackOrder(streams: readonly StreamInfo[]): readonly StreamInfo[] {
  return streams.toSorted((a, b) => roles.indexOf(a.role) - roles.indexOf(b.role) || a.id - b.id);
}
