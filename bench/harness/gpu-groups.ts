/** Back ends and Groups of a rank: of its GPU alone, and of all ranks for a whole list of cases. */
import type { Backend, Group } from "../../src/backends/backend.ts";
import { soloRendezvous } from "../../src/backends/cuda/world.ts";
import { createCudaBackend, type GraphUse } from "../../src/cuda.ts";
import type { World } from "../../src/launch/join-world.ts";

/** Programs of one device, on this rank's GPU. */
export function soloBackend({ localRank }: Pick<World, "localRank">, graph: GraphUse = "auto"): Backend {
  return createCudaBackend({ rendezvous: { ...soloRendezvous(), localRank }, graph });
}

/** All ranks call it together. */
export function openGroup(
  world: World,
  options: { readonly graph: GraphUse; readonly timeout?: number },
): Promise<Group> {
  return createCudaBackend({ rendezvous: world, ...options }).open({
    world: world.worldSize,
    localRanks: [world.rank],
  });
}

interface SharedGroup {
  /** Its Groups' `close` does nothing. */
  readonly on: Backend;
  /** All ranks call it together. */
  readonly close: () => Promise<void>;
}

/** One Group of eager runs and one of graphs, so that communicators, mappings and kernels are made once for all cases. */
export function sharedGroups(world: World, timeout: number): Readonly<Record<"off" | "on", SharedGroup>> {
  const share = (graph: GraphUse): SharedGroup => shareGroup(createCudaBackend({ rendezvous: world, graph, timeout }));
  return { off: share("off"), on: share("on") };
}

function shareGroup(backend: Backend): SharedGroup {
  let opened: Promise<Group> | null = null;
  return {
    on: {
      name: backend.name,
      open: async (options) => {
        opened ??= backend.open(options);
        const group = await opened;
        return { prepare: (program) => group.prepare(program), close: async () => {} };
      },
    },
    close: async () => {
      await (await opened)?.close();
    },
  };
}
