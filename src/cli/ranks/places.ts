/**
 * The places where Braid's contenders run: all ranks in this process on the CPU, or this process's GPU together with
 * those of the other ranks.
 */
import type { Backend, Group, Prepared } from "../../backends/backend.ts";
import type { FlightRecorder } from "../../backends/flight/flight-recorder.ts";
import { createCpuBackend } from "../../cpu.ts";
import { createCudaBackend, type GraphUse } from "../../cuda.ts";
import { compile, requireVerified } from "../../compile/compile.ts";
import { Fusion } from "../../ir/api/fusion.ts";
import { sum } from "../../ir/api/ops.ts";
import { DeviceMesh } from "../../ir/device-mesh.ts";
import type { World } from "../../launch/join-world.ts";
import { at, getOrMake } from "../../support/invariant.ts";
import { withProgramCheck } from "../../launch/checked-backend.ts";

export interface ContenderPlace {
  readonly group: Group;
  /** The ranks that this process holds. */
  readonly ranks: readonly number[];
  /** A barrier of all ranks, on their devices too if they have some. */
  readonly barrier: () => Promise<void>;
  /** Seconds for one run. */
  readonly timeout: number;
}

export interface ContenderPlaces {
  /** Programs with the same use of graphs share a place. All ranks call it in the same order. */
  placeFor(graph: GraphUse): Promise<ContenderPlace>;
  close(): Promise<void>;
}

/** `timeout`: seconds for one run. */
export function placesOnCpu(devices: number, timeout: number): ContenderPlaces {
  const ranks = Array.from({ length: devices }, (_, rank) => rank);
  let group: Promise<Group> | null = null;
  return {
    placeFor: async () => {
      group ??= createCpuBackend({ blas: "auto" }).open({ world: devices, localRanks: ranks });
      // One process runs all ranks, so no barrier is needed.
      return { group: await group, ranks, barrier: async () => {}, timeout };
    },
    close: async () => {
      await (await group)?.close();
    },
  };
}

/** `options`: compared between ranks before they prepare a Program. */
export function placesOnGpus(
  world: World,
  timeout: number,
  options: Readonly<Record<string, string>>,
  flight: FlightRecorder,
): ContenderPlaces {
  const places = new Map<GraphUse, Promise<ContenderPlace>>();
  const closing: (() => Promise<void>)[] = [];
  const open = async (graph: GraphUse): Promise<ContenderPlace> => {
    const backend = withProgramCheck(createCudaBackend({ rendezvous: world, graph, timeout, flight }), world, options);
    const { group, gpuBarrier } = await openGpuBarrier(backend, world);
    closing.push(async () => {
      gpuBarrier.release();
      await group.close();
    });
    const barrier = async (): Promise<void> => {
      // A barrier of the hosts, then one of the GPUs. Hosts alone differ by more than a small program takes.
      await world.barrier();
      await gpuBarrier.execute({ timeout });
    };
    return { group, ranks: [world.rank], barrier, timeout };
  };
  return {
    placeFor: (graph) => {
      return getOrMake(places, graph, () => open(graph));
    },
    close: async () => {
      for (const close of closing) await close();
    },
  };
}

/**
 * A Program that ends on no rank before all ranks have started it: an all-reduce of one number through peers' memory.
 */
async function openGpuBarrier(
  backend: Backend,
  { rank, worldSize, hostNames }: World,
): Promise<{ readonly group: Group; readonly gpuBarrier: Prepared }> {
  const f = new Fusion();
  const one = f.input([worldSize, 1], "float");
  const all = sum(one, [0]);
  f.output(all);
  for (const tensor of [one, all]) tensor.setDeviceMesh(DeviceMesh.range(worldSize));
  one.axis(0).parallelize("DIDx");
  const machine = { devices: worldSize, devicesPerHost: worldSize / hostNames.length };
  const options = { ...machine, backend: "cuda", streams: 1, notes: false } as const;
  const { program } = requireVerified(compile(f, options));
  const group = await backend.open({ world: worldSize, localRanks: [rank] });
  const gpuBarrier = await group.prepare(program);
  const inputs = program.buffers.filter((buffer) => buffer.role === "input" && buffer.rank === rank);
  gpuBarrier.write(at(inputs, 0).id, new Uint8Array(Float32Array.of(1).buffer));
  return { group, gpuBarrier };
}
