/**
 * Runs a prepared list. The first run is eager, which lets libraries load and connect. Later runs replay a graph if all
 * ranks could capture one. A replay costs the host two driver calls: making the context current, and the launch.
 * Nothing is allocated or awaited before the launch. Runs in a row are one launch each, without waiting in between.
 */
import type { OptionValue } from "../../../compile/options.ts";
import { DiagnosticError, renderDiagnostic } from "../../../diagnostics/diagnostic.ts";
import { at } from "../../../support/invariant.ts";
import { type ExecuteOptions, type RunReport, runsInARow } from "../../backend.ts";
import {
  CU_STREAM_CAPTURE_MODE_RELAXED,
  CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY,
  type Out,
} from "../bindings/driver-api.ts";
import { type Gpu, out } from "../gpu.ts";
import type { ListNotes } from "../ops/list-notes.ts";
import type { Resources } from "../resources.ts";
import type { Session } from "../session.ts";
import type { EndOfWorld } from "../world.ts";
import { enqueueList, type PreparedList } from "./prepared-list.ts";
import { type StuckRun, stuckStreams, failTimedOut, withNotes } from "./stuck/stuck-run.ts";
import { type Deadline, pause, streamIsIdle, waitUntil } from "./stuck/wait.ts";
import { type TracedList, traceList } from "./trace-run.ts";
import type { WorldClock } from "./world-clock.ts";

export type GraphUse = OptionValue<"graph">;

export interface RunnerOptions {
  readonly graph: GraphUse;
  /** Milliseconds; the default for runs that do not name a timeout. */
  readonly timeout: number;
  /** Called after a failed run: signals and streams are in an unknown state, so the Group cannot go on. */
  readonly broken: (reason: string) => void;
}

export type Runner = (options: ExecuteOptions) => Promise<RunReport>;

/**
 * Limits of what the driver queues before the host waits, in graphs and in actions of a list. A call that does not fit
 * into the driver's queue blocks this thread, and then no timeout could end a stuck run.
 */
const mostGraphsAhead = 64;
const mostActionsAhead = 1024;

export function createRunner(
  session: Session,
  notes: ListNotes,
  list: PreparedList,
  clock: WorldClock,
  resources: Resources,
  { graph: use, timeout: usual, broken }: RunnerOptions,
): Runner {
  const { gpu, rendezvous } = session;
  const stream = at(list.streams, 0);
  const mostListsAhead = Math.max(1, Math.floor(mostActionsAhead / Math.max(1, list.actions.length)));
  let begun = 0;
  let graph: CapturedGraph | null = null;
  let traced: TracedList | null = null;
  let stopwatch: Stopwatch | null = null;

  const capture = async (deadline: Deadline): Promise<CapturedGraph | null> => {
    let made: CapturedGraph | null = null;
    let problem: unknown = null;
    try {
      made = await captureGraph(gpu, stream, () => enqueueList(session, notes, list, deadline));
    } catch (error) {
      problem = error;
    }
    // All ranks replay or none does: a replaying rank would call NCCL differently from one that issues eagerly.
    const votes = await rendezvous.allGather(Uint8Array.of(made === null ? 0 : 1));
    if (votes.every(([vote]) => vote === 1)) return made === null ? null : resources.own(made);
    made?.[Symbol.dispose]();
    if (use === "on") throw problem instanceof Error ? problem : notCaptured(votes.findIndex(([vote]) => vote !== 1));
    return null;
  };

  /** Returns null if everything is already with the driver. */
  const issue = (deadline: Deadline, trace: boolean): Promise<void> | null => {
    if (trace) {
      traced ??= traceList(session, notes, list, clock, resources);
      list.flight.begin("one by one");
      return enqueueList(session, notes, traced.list, deadline);
    }
    const run = begun++;
    if (use !== "off" && run === 1) return captureAndIssue(deadline);
    list.flight.begin(graph === null ? "one by one" : "all");
    if (graph === null) return enqueueList(session, notes, list, deadline);
    graph.launch();
    return null;
  };

  const captureAndIssue = async (deadline: Deadline): Promise<void> => {
    list.flight.begin("one by one");
    graph = await capture(deadline);
    if (graph === null) await enqueueList(session, notes, list, deadline);
    else graph.launch();
  };

  const ended = (): boolean => streamIsIdle(gpu, stream);

  /** Waits until everything that was queued has finished. Resolves to the milliseconds it waited. */
  const makeRoom = async (deadline: Deadline): Promise<number> => {
    const start = performance.now();
    // Lets messages arrive and the clock advance even if the waits are short.
    await pause(0);
    deadline.signal.throwIfAborted();
    if (performance.now() > deadline.at) deadline.expired();
    await waitUntil(ended, deadline);
    return performance.now() - start;
  };

  return async (options) => {
    const runs = runsInARow(options);
    const { trace = false, deviceTime = false, together = false } = options;
    const timeout = options.timeout === undefined ? usual : 1000 * options.timeout;
    const state = (): StuckRun => ({ gpu, notes, hosts: rendezvous, list, eager: graph === null, runs });
    try {
      if (together) await rendezvous.barrier();
      const start = performance.now();
      const deadline: Deadline = {
        at: start + timeout,
        signal: rendezvous.signal,
        expired: () => failTimedOut(state(), timeout),
      };
      gpu.makeCurrent();
      const current = performance.now();
      // Recording the event belongs to the measurement, so it does not count as host time.
      const watch = deviceTime ? (stopwatch ??= createStopwatch(session, stream, resources)) : null;
      watch?.start();
      const watching = performance.now();
      let waited = 0;
      for (let run = 0, ahead = 0; run < runs; run++, ahead++) {
        if (ahead >= (graph === null ? mostListsAhead : mostGraphsAhead)) {
          waited += await makeRoom(deadline);
          ahead = 0;
        }
        const issuing = issue(deadline, trace);
        if (issuing !== null) await issuing;
      }
      const issued = performance.now();
      watch?.stop();
      await waitUntil(ended, deadline);
      const over = performance.now();
      // Prepares the next run, so that it starts with its launch. After a failed run there is no next one.
      list.flight.end();
      list.progress.reset();
      return {
        milliseconds: over - start,
        hostMilliseconds: current - start + (issued - watching) - waited,
        ...(watch === null ? {} : { deviceMilliseconds: watch.read() }),
        ...(trace && traced !== null ? traced.read() : { trace: [] }),
      };
    } catch (thrown) {
      const { error, notes: calls } = await causeOf(thrown, rendezvous.signal);
      // The message about another rank's end does not say what this rank was doing.
      const stuck = error === rendezvous.signal.reason ? stuckStreams(state()) : [];
      broken(error instanceof DiagnosticError ? (error.diagnostics[0]?.message ?? error.message) : String(error));
      throw session.flight.failed(withNotes(error, [...stuck, ...calls]));
    }
  };
}

function notCaptured(rank: number): DiagnosticError {
  return new DiagnosticError([
    {
      code: "gpu-unsupported",
      message: `rank ${rank} cannot capture the program into a CUDA graph`,
      place: { kind: "option", text: "--graph on" },
      found: "a command list that the driver or NCCL cannot capture",
      expected: "a graph on every rank",
      help: "run with --graph auto or --graph off; the message of that rank says which call failed",
    },
  ]);
}

/** Two timing events around work on a stream: the time of a run as the GPU sees it. */
interface Stopwatch {
  readonly start: () => void;
  readonly stop: () => void;
  /** Milliseconds, once the stream is idle. */
  readonly read: () => number;
}

function createStopwatch({ gpu, pool }: Session, stream: number, resources: Resources): Stopwatch {
  const [start, stop] = [pool.event("time", resources), pool.event("time", resources)];
  return {
    start: () => gpu.call.cuEventRecord(start, stream),
    stop: () => gpu.call.cuEventRecord(stop, stream),
    read: () => {
      const milliseconds: Out = [0];
      gpu.call.cuEventElapsedTime(milliseconds, start, stop);
      return milliseconds[0];
    },
  };
}

// Which failure to report of a run in which a peer died. NCCL notices that too, perhaps before the rendezvous does, and
// its call fails. The peer's end is then the reason, and the failed call a note.

interface Cause {
  readonly error: unknown;
  readonly notes: readonly string[];
}

/** Milliseconds for the news of a peer's end to arrive. */
const newsMilliseconds = 200;

export async function causeOf(error: unknown, signal: Pick<EndOfWorld, "reason">): Promise<Cause> {
  if (!(error instanceof DiagnosticError) || error.diagnostics[0]?.code !== "gpu-call-failed") {
    return { error, notes: [] };
  }
  const deadline = performance.now() + newsMilliseconds;
  while (signal.reason === undefined && performance.now() < deadline) await pause(1);
  if (signal.reason === undefined) return { error, notes: [] };
  return { error: signal.reason, notes: error.diagnostics.map(renderDiagnostic) };
}

// Captures a command list as a CUDA graph: its actions are issued once from stream 0 without executing, and one call
// launches the graph per run. Streams fork from stream 0 and rejoin it (ops/device-ops.ts). Signals are batches of
// memory operations, which a graph can hold. Kernels keep the priority of their stream.

export interface CapturedGraph extends Disposable {
  readonly launch: () => void;
}

/**
 * `enqueue` issues the whole list. Throws what it throws, and `gpu-call-failed`. No capture is under way afterwards.
 */
export async function captureGraph(gpu: Gpu, stream: number, enqueue: () => Promise<void>): Promise<CapturedGraph> {
  gpu.call.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  let graph: number;
  try {
    await enqueue();
    graph = out((value) => gpu.call.cuStreamEndCapture(stream, value));
  } catch (error) {
    // Ends the capture and drops what it holds.
    gpu.raw.cuStreamEndCapture(stream, [0]);
    throw error;
  }
  try {
    // Without this flag all kernels, NCCL's included, get the priority of the stream that the graph is launched on.
    const flags = CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    const exec = out((value) => gpu.call.cuGraphInstantiateWithFlags(value, graph, flags));
    gpu.call.cuGraphUpload(exec, stream);
    return {
      launch: () => {
        const status = gpu.raw.cuGraphLaunch(exec, stream);
        if (status !== 0) gpu.check(status, "cuGraphLaunch");
      },
      [Symbol.dispose]: () => gpu.call.cuGraphExecDestroy(exec),
    };
  } finally {
    gpu.call.cuGraphDestroy(graph);
  }
}
