/**
 * The CPU back end: all ranks in one process and one memory. Streams run asynchronously on worker threads, one per
 * core. With an interleaving, with no workers, or where threads are unavailable, the deterministic machine runs them on
 * the calling thread.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import { requireWholeNumber } from "../../diagnostics/arguments.ts";
import { options as schema, type OptionValue } from "../../compile/options.ts";
import { requireOptions } from "../../compile/options/resolve.ts";
import { keysOf } from "../../support/invariant.ts";
import type { Backend, Group, OpenOptions } from "../backend.ts";
import type { FlightRecorder } from "../flight/flight-recorder.ts";
import { type MachineGroupOptions, openMachineGroup } from "./machine-group.ts";

export interface CpuOptions extends MachineGroupOptions {
  /** Worker threads; one per core if omitted. 0 runs the machine on the calling thread. */
  readonly workers?: number;
  /**
   * `auto`: GEMMs of floats use a BLAS of the system if koffi and such a library are installed, chosen once per
   * group. It is faster but adds in another order, so bits depend on the machine and on how a GEMM is chunked. `off`,
   * the default: the WebAssembly kernels, with the same bits everywhere.
   */
  readonly blas?: BlasUse;
  /** Records what failed runs did; createFlightRecorder() if omitted. */
  readonly flight?: FlightRecorder;
}

export type BlasUse = OptionValue<"blas">;
export const blasUses: readonly BlasUse[] = schema.blas.kind.choices;

const otherNames = keysOf({
  workers: true,
  flight: true,
  interleaving: true,
  queues: true,
  transfers: true,
} satisfies Record<Exclude<keyof CpuOptions, "blas">, true>);

/**
 * A back end for all ranks in this process. Throws `bad-argument`, `bad-option` and `option-unknown`. Its `open` throws
 * `device-count` unless all ranks are local.
 */
export function createCpuBackend(options: CpuOptions = {}): Backend {
  requireOptions(["blas"], options, otherNames);
  if (options.workers !== undefined) requireWholeNumber("createCpuBackend({ workers })", options.workers, 0);
  return { name: "cpu", open: (world) => openGroup(world, options) };
}

async function openGroup({ world, localRanks }: OpenOptions, options: CpuOptions): Promise<Group> {
  if (localRanks.length !== world) {
    fail("device-count", "the CPU back end holds all ranks of a world in one process", {
      place: { kind: "call", text: "open({ world, localRanks })" },
      found: `${localRanks.length} local ranks of ${world}`,
      expected: `ranks 0 to ${world - 1}`,
      help: "pass every rank in localRanks",
    });
  }
  const { workers, blas = "off", flight: given, ...machine } = options;
  const flight = given ?? (hasThreads() ? await defaultRecorder() : null);
  const file = blas === "auto" && hasThreads() ? await blasFile() : null;
  if (workers === 0 || Object.keys(machine).length > 0 || flight === null) {
    if (file === null) return openMachineGroup(machine, flight);
    const { libraryGemms } = await import("./blas/blas-gemms.ts");
    return openMachineGroup(machine, flight, (buffer) => libraryGemms(file, buffer));
  }
  const { openThreadedGroup } = await import("./threads/threaded-group.ts");
  return openThreadedGroup(workers === undefined ? {} : { workers }, file, flight);
}

async function defaultRecorder(): Promise<FlightRecorder> {
  const { createFlightRecorder } = await import("../flight/flight-recorder.ts");
  return createFlightRecorder();
}

async function blasFile(): Promise<string | null> {
  const { findBlas } = await import("./blas/blas-library.ts");
  return findBlas()?.file ?? null;
}

/** Node has threads; a browser runs the machine. */
function hasThreads(): boolean {
  return typeof process === "object" && typeof process.versions?.node === "string";
}
