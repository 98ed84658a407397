/**
 * A Program prepared for one rank: placed, compiled, with its slots zeroed on all ranks. A run issues the list eagerly or launches its graph, then waits for stream
 * 0 with an eye on the clock and on the other ranks.
 */
import type { BufferId } from "../../commands/buffer.ts";
import type { Program } from "../../commands/program.ts";
import { DiagnosticError, fail } from "../../diagnostics/diagnostic.ts";
import { at, invariant } from "../../support/invariant.ts";
import { makeId } from "../../support/ids.ts";
import type { CommandStreamId } from "../../commands/command.ts";
import type { ExecuteOptions, Prepared, RunReport } from "../backend.ts";
import { type Arenas, placeProgram } from "./memory/arenas.ts";
import { teamsOf } from "./nccl/teams.ts";
import { createResources, type Resources } from "./resources.ts";
import { enqueueList } from "./run/enqueue.ts";
import { type CapturedGraph, captureGraph } from "./run/graph.ts";
import { type PreparedList, prepareList } from "./run/prepared-list.ts";
import { stuckStream } from "./run/progress.ts";
import { traceList, type TracedList } from "./run/trace-run.ts";
import { type Deadline, streamIsIdle, waitUntil } from "./run/wait.ts";
import type { Session } from "./session.ts";

export type GraphUse = "auto" | "on" | "off";

export interface PrepareOptions {
  readonly graph: GraphUse;
  /** Milliseconds for NCCL to connect, and for runs that name no other. */
  readonly timeout: number;
  /** Called when a run has failed: signals and streams are in no known state, so the Group cannot go on. */
  readonly broken: (reason: string) => void;
}

/** All ranks call it together. */
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
  const runner = createRunner(session, program, list, resources, options);
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

type Runner = (options: ExecuteOptions) => Promise<RunReport>;

/** Eager in its first run, which lets libraries load and connect; then a graph, where all ranks could capture one. */
function createRunner(
  session: Session,
  program: Program,
  list: PreparedList,
  resources: Resources,
  { graph: use, timeout: usual, broken }: PrepareOptions,
): Runner {
  const { gpu, rendezvous } = session;
  const stream = at(list.streams, 0);
  let runs = 0;
  let graph: CapturedGraph | null = null;
  let traced: TracedList | null = null;

  const capture = async (deadline: Deadline): Promise<CapturedGraph | null> => {
    let made: CapturedGraph | null = null;
    let problem: unknown = null;
    try {
      made = await captureGraph(gpu, stream, () => enqueueList(session, program, list, deadline));
    } catch (error) {
      problem = error;
    }
    // The whole world or nobody: ranks that replay beside ranks that issue eagerly would meet NCCL in different ways.
    const votes = await rendezvous.allGather(Uint8Array.of(made === null ? 0 : 1));
    if (votes.every(([vote]) => vote === 1)) return made === null ? null : resources.own(made);
    made?.[Symbol.dispose]();
    if (use === "on") throw problem instanceof Error ? problem : notCaptured(votes.findIndex(([vote]) => vote !== 1));
    return null;
  };

  const issue = async (deadline: Deadline, trace: boolean): Promise<void> => {
    if (trace) {
      traced ??= traceList(session, program, list, resources);
      return enqueueList(session, program, traced.list, deadline);
    }
    if (use !== "off" && runs === 1) graph = await capture(deadline);
    if (!trace) runs++;
    if (graph === null) return enqueueList(session, program, list, deadline);
    graph.launch();
  };

  return async ({ timeout = usual, trace = false }) => {
    gpu.makeCurrent();
    list.progress.reset();
    const start = performance.now();
    const deadline: Deadline = {
      at: start + timeout,
      signal: rendezvous.signal,
      expired: () => timedOut(session, program, list, graph === null, timeout),
    };
    try {
      await issue(deadline, trace);
      await waitUntil(() => streamIsIdle(gpu, stream), deadline);
    } catch (error) {
      // What another rank's end is told by does not say what this one was doing.
      const notes = error === rendezvous.signal.reason ? stuckStreams(session, program, list, graph === null) : [];
      broken(error instanceof DiagnosticError ? (error.diagnostics[0]?.message ?? error.message) : String(error));
      throw withNotes(error, notes);
    }
    const milliseconds = performance.now() - start;
    return { milliseconds, trace: trace && traced !== null ? traced.read() : [] };
  };
}

function notCaptured(rank: number): DiagnosticError {
  return new DiagnosticError([
    {
      code: "gpu-unsupported",
      message: `rank ${rank} cannot capture the program into a CUDA graph`,
      place: { kind: "option", text: "--graph on" },
      found: "a list that its driver or NCCL does not capture",
      expected: "a graph on every rank",
      help: "run with --graph auto or --graph off; the message of that rank says which call failed",
    },
  ]);
}

function timedOut(session: Session, program: Program, list: PreparedList, eager: boolean, timeout: number): never {
  const { gpu } = session;
  const own = at(program.ranks, gpu.rank);
  const notes = stuckStreams(session, program, list, eager);
  return fail({
    code: "timed-out",
    message: `rank ${gpu.rank} did not end its run within ${timeout} ms`,
    place: { kind: "call", text: `rank ${gpu.rank} of ${program.ranks.length}, ${own.commands.length} commands` },
    found: notes[0] ?? "the GPU is at work, and no stream waits for a peer",
    expected: `its end within ${timeout} ms`,
    help: "look at the rank that it waits for; allow more time (--timeout), or use smaller sizes",
    notes: notes.slice(1),
  });
}

/**
 * A line for every stream that has not ended: what it came to, and the peers that it waits for. In a graph, which runs apart from the
 * streams, those that have come to a peer and are not known to be past it.
 */
function stuckStreams({ gpu }: Session, program: Program, list: PreparedList, eager: boolean): readonly string[] {
  return list.streams.flatMap((stream, i) => {
    const id = makeId<CommandStreamId>(i);
    const said = list.progress.last(id);
    if (!eager) return said === null || said.passed ? [] : [stuckStream(program, gpu.rank, id, said.command)];
    if (gpu.raw.cuStreamQuery(stream) === 0) return [];
    const reached = Math.max(said?.command ?? -1, lastEvent(gpu, program, list, id));
    return [stuckStream(program, gpu.rank, id, reached < 0 ? null : reached)];
  });
}

function withNotes(error: unknown, notes: readonly string[]): unknown {
  if (!(error instanceof DiagnosticError) || notes.length === 0) return error;
  const [first, ...others] = error.diagnostics;
  if (first === undefined) return error;
  return new DiagnosticError([{ ...first, notes: [...(first.notes ?? []), ...notes] }, ...others]);
}

/** The last recordEvent of the stream that has completed, -1 for none. */
function lastEvent(gpu: Session["gpu"], program: Program, { events }: PreparedList, stream: CommandStreamId): number {
  return at(program.ranks, gpu.rank).commands.findLastIndex(
    (command) =>
      command.kind === "recordEvent" &&
      command.stream === stream &&
      gpu.raw.cuEventQuery(at(events, command.event)) === 0,
  );
}

function busyGpu(rank: number, timeout: number): never {
  return fail({
    code: "timed-out",
    message: `the GPU of rank ${rank} does not answer`,
    place: { kind: "call", text: "prepare(program)" },
    found: `a memset that takes longer than ${timeout} ms`,
    expected: "an idle GPU",
    help: "look for other processes on this GPU (nvidia-smi lists them)",
  });
}
