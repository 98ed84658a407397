/** A rank's device operations prepared: memory placed, kernels compiled, slots zeroed on all ranks. */
import { fail } from "../../diagnostics/diagnostic.ts";
import type { Prepared } from "../backend.ts";
import { type Arenas, placeArenas } from "./bind/spaces.ts";
import type { TensorPlace } from "./ops/address.ts";
import { requireReachable } from "./memory/require-reachable.ts";
import { createResources, type Resources } from "./resources.ts";
import { type DeviceList, prepareList } from "./run/prepared-list.ts";
import { createRunner, type RunnerOptions } from "./run/runner.ts";
import { streamIsIdle, waitUntil } from "./run/stuck/wait.ts";
import type { Session } from "./session.ts";

/** `timeout` also applies to connecting NCCL and to zeroing slots. */
export type PrepareOptions = RunnerOptions;

export interface PreparedDevice extends Pick<Prepared, "execute" | "release"> {
  /** Copies bytes into this rank's memory. */
  readonly write: (place: TensorPlace, bytes: Uint8Array) => void;
  /** A copy of bytes of this rank's memory. */
  readonly read: (place: TensorPlace, bytes: number) => Uint8Array;
}

/** Collective: all ranks call it together. */
export async function prepareDevice(
  session: Session,
  list: DeviceList,
  options: PrepareOptions,
): Promise<PreparedDevice> {
  const resources = createResources();
  try {
    return await prepareWith(session, list, options, resources);
  } catch (error) {
    resources[Symbol.dispose]();
    throw error;
  }
}

async function prepareWith(
  session: Session,
  list: DeviceList,
  options: PrepareOptions,
  resources: Resources,
): Promise<PreparedDevice> {
  const { gpu, rendezvous, memory, heap, staging } = session;
  gpu.makeCurrent();
  const { ops, notes } = list;
  await requireReachable(list, rendezvous);
  const arenas = await placeArenas(ops, memory, heap, resources);
  const communicators =
    ops.teams.length === 0 ? new Map() : await session.communicators().open(ops.teams, options.timeout);
  const prepared = prepareList(session, list, arenas, communicators, resources);
  await zeroSlots(session, arenas, options.timeout);
  await rendezvous.barrier();
  const runner = createRunner(session, notes, prepared, await session.clock(), resources, options);
  let released = false;
  return {
    write: (place, bytes) => staging.upload(arenas.addressOf(place), bytes),
    read: (place, count) => {
      const bytes = new Uint8Array(count);
      staging.download(arenas.addressOf(place), bytes);
      return bytes;
    },
    execute: (run) => runner(run ?? {}),
    release: () => {
      if (released) return;
      released = true;
      resources[Symbol.dispose]();
    },
  };
}

async function zeroSlots(
  { gpu, rendezvous, hostStream }: Session,
  { ownSlots }: Arenas,
  timeout: number,
): Promise<void> {
  if (ownSlots.bytes === 0) return;
  gpu.call.cuMemsetD8Async(ownSlots.address, 0, ownSlots.bytes, hostStream);
  await waitUntil(() => streamIsIdle(gpu, hostStream), {
    at: performance.now() + timeout,
    signal: rendezvous.signal,
    expired: () => busyGpu(gpu.rank, timeout),
  });
}

function busyGpu(rank: number, timeout: number): never {
  return fail("timed-out", `the GPU of rank ${rank} does not answer`, {
    place: { kind: "call", text: "prepare(program)" },
    found: `a memset that takes longer than ${timeout} ms`,
    expected: "an idle GPU",
    help: "check for other processes on this GPU (nvidia-smi lists them)",
  });
}
