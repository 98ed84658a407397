/**
 * The CPU back end: all ranks in one process and one memory. Streams run asynchronously on worker threads, one per core; on
 * demand (a schedule, or no workers), or where there are no threads, the deterministic machine runs them on the calling thread.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import { requireWholeNumber } from "../../diagnostics/whole-number.ts";
import type { Backend, Group, OpenOptions } from "../backend.ts";
import { type MachineGroupOptions, openMachineGroup } from "./machine-group.ts";

export interface CpuOptions extends MachineGroupOptions {
  /** Worker threads; one per core if not given. 0: the machine, on the calling thread. */
  readonly workers?: number;
}

export function createCpuBackend(options: CpuOptions = {}): Backend {
  if (options.workers !== undefined) requireWholeNumber("createCpuBackend({ workers })", options.workers, 0);
  return { name: "cpu", open: (world) => openGroup(world, options) };
}

async function openGroup({ world, localRanks }: OpenOptions, options: CpuOptions): Promise<Group> {
  if (localRanks.length !== world) {
    fail({
      code: "device-count",
      message: "the CPU back end holds all ranks of a world in one process",
      place: { kind: "call", text: "open({ world, localRanks })" },
      found: `${localRanks.length} local ranks of ${world}`,
      expected: `ranks 0 to ${world - 1}`,
      help: "name all ranks as local",
    });
  }
  const { workers, ...machine } = options;
  if (workers === 0 || Object.keys(machine).length > 0 || !hasThreads()) return openMachineGroup(machine);
  const { openThreadedGroup } = await import("./threads/threaded-group.ts");
  return openThreadedGroup(workers === undefined ? {} : { workers });
}

/** Threads are Node's: a browser runs the machine. */
function hasThreads(): boolean {
  return typeof process === "object" && typeof process.versions?.node === "string";
}
