/** `--devices-per-host` of a run whose ranks are on several hosts. */
import type { World } from "../../launch/join-world.ts";
import { isDumpFile } from "../program/dump-file.ts";
import type { RunFlags } from "./run-flags.ts";

/** As the ranks are on the hosts, unless the command line says otherwise. Dumps are already lowered. */
export function hostsOfRun(
  file: string,
  { devicesPerHost }: Pick<RunFlags, "devicesPerHost">,
  world: Pick<World, "worldSize" | "hostNames"> | null,
): { readonly devicesPerHost?: number } {
  if (world === null || world.hostNames.length < 2 || devicesPerHost !== undefined || isDumpFile(file)) return {};
  return { devicesPerHost: world.worldSize / world.hostNames.length };
}
