/**
 * The CPU back end in its three forms, for tests that run everything on each: the machine, one worker and two. Workers
 * are started once and serve all tests of a file.
 */
import type { Backend, Group } from "@braid-compiler/braid";
import { createCpuBackend } from "@braid-compiler/braid/cpu";
import { runs } from "./suite.ts";

function keptOpen(backend: Backend): Backend {
  let kept: Promise<Group> | null = null;
  return {
    name: backend.name,
    open: async () => {
      kept ??= backend.open({ world: 1, localRanks: [0] });
      const group = await kept;
      return { prepare: (program) => group.prepare(program), close: async () => {} };
    },
  };
}

/** The machine, one worker, two workers. */
export const cpuBackends: readonly [machine: Backend, one: Backend, two: Backend] = [
  createCpuBackend({ workers: 0 }),
  keptOpen(createCpuBackend({ workers: 1 })),
  keptOpen(createCpuBackend({ workers: 2 })),
];

/** All in the long suite. Quick has one worker or two, as `number` is even or odd: each form prepares all kernels. */
export function backendsFor(number: number): readonly Backend[] {
  const [machine, one, two] = cpuBackends;
  return runs({ quick: 1, long: 2 }) === 2 ? cpuBackends : [machine, number % 2 === 0 ? one : two];
}
