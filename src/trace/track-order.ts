/** The order in which pictures of a run show a rank's streams, those of the user first, and their labels. */
import type { StreamInfo } from "../commands/command.ts";

const roles: readonly StreamInfo["role"][] = ["caller", "worker", "communicator", "pair", "copy"];

export function inTrackOrder(streams: readonly StreamInfo[]): readonly StreamInfo[] {
  return streams.toSorted((a, b) => roles.indexOf(a.role) - roles.indexOf(b.role) || a.id - b.id);
}

/** CPUs have no NCCL: there the executor itself moves what a library's stream has in its queue. */
export function trackLabel({ role, name }: StreamInfo, on: "cpu" | "cuda"): string {
  const isLibrary = role === "communicator" || role === "pair";
  return on === "cpu" && isLibrary ? name.replace(/^\S+/u, "transfers") : name;
}
