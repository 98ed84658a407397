/**
 * The CPU back end in its three forms, for tests that run everything on each: the machine, one worker and two. Workers are started once
 * and serve all tests of a file.
 */
import type { Backend, Group } from "braid";
import { createCpuBackend } from "braid/cpu";

function keptOpen(backend: Backend): Backend {
  let group: Promise<Group> | null = null;
  return {
    name: backend.name,
    open: async () => {
      group ??= backend.open({ world: 1, localRanks: [0] });
      const { prepare } = await group;
      return { prepare, close: async () => {} };
    },
  };
}

export const machine: Backend = createCpuBackend({ workers: 0 });
export const oneWorker: Backend = keptOpen(createCpuBackend({ workers: 1 }));
export const twoWorkers: Backend = keptOpen(createCpuBackend({ workers: 2 }));
export const cpuBackends: readonly Backend[] = [machine, oneWorker, twoWorkers];
