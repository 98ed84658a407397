/**
 * Runs a prepared list: eagerly the first time, which lets libraries load and connect; then as a graph, where all ranks could capture one. A run of a graph costs the host
 * two calls of the driver, one that makes the context current and the launch; nothing is allocated or awaited before the launch. Runs in a row are a launch each, without waiting between.
 */
import type { Program } from "../../../commands/program.ts";
import { DiagnosticError } from "../../../diagnostics/diagnostic.ts";
import { at } from "../../../support/invariant.ts";
import type { ExecuteOptions, RunReport } from "../../backend.ts";
import { runsInARow } from "../../runs-in-a-row.ts";
import type { Resources } from "../resources.ts";
import type { Session } from "../session.ts";
import { enqueueList } from "./actions/enqueue.ts";
import { type CapturedGraph, captureGraph } from "./graph.ts";
import { pause } from "./pause.ts";
import type { PreparedList } from "./prepared-list.ts";
import { type StuckRun, stuckStreams, timedOut, withNotes } from "./stuck/stuck-run.ts";
import { traceList, type TracedList } from "./trace-run.ts";
import type { WorldClock } from "./world-clock.ts";
import { createStopwatch, type Stopwatch } from "./stopwatch.ts";
import { type Deadline, streamIsIdle, waitUntil } from "./stuck/wait.ts";

export type GraphUse = "auto" | "on" | "off";

export interface RunnerOptions {
  readonly graph: GraphUse;
  /** Milliseconds, for runs that name no other. */
  readonly timeout: number;
  /** Called when a run has failed: signals and streams are in no known state, so the Group cannot go on. */
  readonly broken: (reason: string) => void;
}

export type Runner = (options: ExecuteOptions) => Promise<RunReport>;

/**
 * What the driver is given before the host waits, in graphs and in actions of a list: a call that its queue has no room for blocks this thread, and behind a GPU that is stuck no
 * time-out would end it.
 */
const mostGraphsAhead = 64;
const mostActionsAhead = 1024;

export function createRunner(
  session: Session,
  program: Program,
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

  /** Null when everything is with the driver already. */
  const issue = (deadline: Deadline, trace: boolean): Promise<void> | null => {
    if (trace) {
      traced ??= traceList(session, program, list, clock, resources);
      return enqueueList(session, program, traced.list, deadline);
    }
    const run = begun++;
    if (use !== "off" && run === 1) return captureAndIssue(deadline);
    if (graph === null) return enqueueList(session, program, list, deadline);
    graph.launch();
    return null;
  };

  const captureAndIssue = async (deadline: Deadline): Promise<void> => {
    graph = await capture(deadline);
    if (graph === null) await enqueueList(session, program, list, deadline);
    else graph.launch();
  };

  const ended = (): boolean => streamIsIdle(gpu, stream);

  /** Resolves to the milliseconds that it waited, for the end of all that has been handed over. */
  const makeRoom = async (deadline: Deadline): Promise<number> => {
    const start = performance.now();
    // Waits may be so short that none of them gives way to messages or looks at the clock.
    await pause(0);
    deadline.signal.throwIfAborted();
    if (performance.now() > deadline.at) deadline.expired();
    await waitUntil(ended, deadline);
    return performance.now() - start;
  };

  return async (options) => {
    const runs = runsInARow(options);
    const { timeout = usual, trace = false, deviceTime = false } = options;
    const start = performance.now();
    const state = (): StuckRun => ({ gpu, program, list, eager: graph === null, runs });
    const deadline: Deadline = {
      at: start + timeout,
      signal: rendezvous.signal,
      expired: () => timedOut(state(), timeout),
    };
    try {
      gpu.makeCurrent();
      const current = performance.now();
      // Recording its event is the work of who measures, not of the run: it is no part of the host's time.
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
      // For the next run, which then begins with its launch; after a failed one there is none.
      list.progress.reset();
      return {
        milliseconds: over - start,
        hostMilliseconds: current - start + (issued - watching) - waited,
        ...(watch === null ? {} : { deviceMilliseconds: watch.read() }),
        ...(trace && traced !== null ? traced.read() : { trace: [] }),
      };
    } catch (error) {
      // What another rank's end is told by does not say what this one was doing.
      const notes = error === rendezvous.signal.reason ? stuckStreams(state()) : [];
      broken(error instanceof DiagnosticError ? (error.diagnostics[0]?.message ?? error.message) : String(error));
      throw withNotes(error, notes);
    }
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
