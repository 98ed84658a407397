/**
 * The thread that watches a rank's standard input for the end of its launcher (see end-with-parent.ts) and for its
 * requests for flight records, which it writes if the main thread does not. It also sends the pulse, which therefore
 * goes on while the main thread computes.
 */
import { Socket } from "node:net";
import process from "node:process";
import { parentPort } from "node:worker_threads";
import { bytesAt } from "../../backends/cuda/bindings/native-library.ts";
import { readProgress } from "../../backends/cuda/run/stuck/progress.ts";
import {
  type FlightEntry,
  type FlightMessage,
  type GpuWords,
  isFlightMessage,
  writeFlightFiles,
} from "../../backends/flight/flight-files.ts";
import { type FlightStanding, reportedStanding } from "../../trace/flight/flight-record.ts";
import { sendPulses, flightRequests } from "../spawn-ranks.ts";

// Writes the flight records of a rank in place of its main thread, which may compute, or be blocked in a library. The
// launcher asks for them on the rank's standard input.

/** Milliseconds that the main thread gets to write them itself, with its own reason. */
const patience = 300;

interface FlightStandIn {
  readonly take: (message: FlightMessage) => void;
  readonly asked: (requests: string) => void;
}

function createFlightStandIn(): FlightStandIn {
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

const stdin = 0;

/** Milliseconds that the process gets to end by itself. */
const grace = 1000;

const flights = createFlightStandIn();
parentPort?.on("message", (message: unknown) => {
  if (isFlightMessage(message)) flights.take(message);
});
// Messages alone do not keep the process alive.
parentPort?.unref();

new Socket({ fd: stdin })
  .on("data", (bytes) => flights.asked(bytes.toString()))
  // A pipe that fails ends in `close`.
  .on("error", () => {})
  .on("close", () => {
    parentPort?.postMessage("closed");
    setTimeout(() => process.kill(process.pid, "SIGKILL"), grace);
  });

sendPulses();
