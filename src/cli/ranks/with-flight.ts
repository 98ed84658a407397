/** The flight recorder of a command that runs Programs. It also writes its records at SIGUSR1. */
import { createHash } from "node:crypto";
import process from "node:process";
import type { FlightMessage } from "../../backends/flight/flight-files.ts";
import {
  createFlightRecorder,
  defaultFlightFolder,
  type FlightRecorder,
} from "../../backends/flight/flight-recorder.ts";
import type { Whereabouts } from "./where-to-run.ts";

/** `folder`: undefined for the usual one. `mirror` as in FlightOptions. */
export async function withFlight<T>(
  where: Whereabouts,
  folder: string | undefined,
  use: (recorder: FlightRecorder) => Promise<T>,
  mirror?: (message: FlightMessage) => void,
): Promise<T> {
  const recorder = createFlightRecorder({
    folder: folder ?? usualFlightFolder(where),
    ...(mirror === undefined ? {} : { mirror }),
  });
  const write = (): void => void recorder.write("asked by SIGUSR1");
  // Without a listener, Node starts its debugger.
  process.on("SIGUSR1", write);
  try {
    return await use(recorder);
  } finally {
    process.removeListener("SIGUSR1", write);
  }
}

/** The same for all ranks of a run and, if `braid run` started them, for their launcher. */
export function usualFlightFolder(where: Whereabouts): string {
  if (where.kind !== "rank") return defaultFlightFolder();
  const { job } = where.place;
  const run = where.supervised ? String(process.ppid) : createHash("sha256").update(job).digest("hex").slice(0, 16);
  return defaultFlightFolder(run);
}
