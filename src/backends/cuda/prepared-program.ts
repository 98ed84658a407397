/** A Program prepared for one rank: placed, compiled, with its slots zeroed on all ranks. */
import type { BufferId } from "../../commands/buffer.ts";
import type { Program } from "../../commands/program.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { Prepared } from "../backend.ts";
import { type Arenas, placeProgram } from "./memory/arenas.ts";
import { teamsOf } from "./nccl/teams.ts";
import { createResources, type Resources } from "./resources.ts";
import { prepareList } from "./run/prepared-list.ts";
import { createRunner, type RunnerOptions } from "./run/runner.ts";
import { streamIsIdle, waitUntil } from "./run/stuck/wait.ts";
import type { Session } from "./session.ts";

/** `timeout` also applies to connecting NCCL and to zeroing slots. */
export type PrepareOptions = RunnerOptions;

/** Collective: all ranks call it together. */
export async function prepareProgram(session: Session, program: Program, options: PrepareOptions): Promise<Prepared> {
  const resources = createResources();
  try {
    return await prepareWith(session, program, options, resources);
  } catch (error) {
    resources[Symbol.dispose]();
    throw error;
  }
}

async function prepareWith(
  session: Session,
  program: Program,
  options: PrepareOptions,
  resources: Resources,
): Promise<Prepared> {
  const { gpu, rendezvous } = session;
  gpu.makeCurrent();
  const arenas = await placeProgram(program, gpu.rank, session.memory, session.heap, resources);
  const teams = teamsOf(program);
  const communicators = teams.length === 0 ? new Map() : await session.communicators().open(teams, options.timeout);
  const list = prepareList(session, program, arenas, communicators, resources);
  await zeroSlots(session, arenas, options.timeout);
  await rendezvous.barrier();
  const runner = createRunner(session, program, list, await session.clock(), resources, options);
  let released = false;
  return {
    write: (buffer, bytes) => {
      session.staging.upload(ownAddress(program, gpu.rank, arenas, buffer), bytes);
    },
    read: (buffer) => {
      const bytes = new Uint8Array(at(program.buffers, buffer).bytes);
      session.staging.download(ownAddress(program, gpu.rank, arenas, buffer), bytes);
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

function ownAddress(program: Program, rank: number, arenas: Arenas, id: BufferId): number {
  const buffer = at(program.buffers, id);
  invariant(buffer.rank === rank, "callers reach the buffers of local ranks", { rank, buffer: buffer.name });
  return arenas.bufferAddress(id);
}

function busyGpu(rank: number, timeout: number): never {
  return fail({
    code: "timed-out",
    message: `the GPU of rank ${rank} does not answer`,
    place: { kind: "call", text: "prepare(program)" },
    found: `a memset that takes longer than ${timeout} ms`,
    expected: "an idle GPU",
    help: "check for other processes on this GPU (nvidia-smi lists them)",
  });
}
