/**
 * Writes the flight records of a rank in place of its main thread, which may compute, or be blocked in a library. The
 * launcher asks for them on the rank's standard input.
 */
import { type FlightEntry, writeFlightFiles } from "../../backends/flight/flight-files.ts";
import type { FlightMessage, GpuWords } from "../../backends/flight/flight-message.ts";
import { bytesAt } from "../../backends/cuda/bindings/native-library.ts";
import { readProgress } from "../../backends/cuda/run/stuck/progress.ts";
import { flightRequests } from "./flight-request.ts";
import { type FlightStanding, reportedStanding } from "../../trace/flight/flight-record.ts";

/** Milliseconds that the main thread gets to write them itself, with its own reason. */
const patience = 300;

interface FlightStandIn {
  readonly take: (message: FlightMessage) => void;
  readonly asked: (requests: string) => void;
}

export function createFlightStandIn(): FlightStandIn {
  const entries = new Map<number, FlightEntry>();
  let folder: string | null = null;
  let written = false;
  const write = (reason: string, failed: boolean): void => {
    try {
      if (folder !== null) writeFlightFiles(folder, entries.values(), { reason, failed });
    } catch {
      // The launcher says which ranks have left no record.
    }
  };
  return {
    take: (message) => {
      switch (message.kind) {
        case "open": {
          const { entry, gpu } = message;
          folder = message.folder;
          entries.set(message.id, { ...entry, plan: () => entry.plan, standings: () => standingsAt(gpu) });
          return;
        }
        case "release":
          entries.delete(message.id);
          return;
        case "written":
          written = true;
      }
    },
    asked: (requests) => {
      if (requests.includes(flightRequests.goesOn)) write("asked by a signal", false);
      if (!requests.includes(flightRequests.failed)) return;
      setTimeout(() => {
        if (!written) write("the main thread was busy when the run ended", true);
      }, patience);
    },
  };
}

function standingsAt({ address, streams }: GpuWords): readonly FlightStanding[] {
  const view = new DataView(bytesAt(address, 4 * streams));
  return Array.from({ length: streams }, (_, stream) => reportedStanding(readProgress(view, stream)));
}
