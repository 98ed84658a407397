/**
 * The worker threads of a group, seen from the main thread. A worker that dies ends the run in progress. The pool then
 * stops the others, and the next use starts new ones and prepares every living Program again.
 */
import { Worker } from "node:worker_threads";
import { invariant } from "../../../support/invariant.ts";
import { packageFile } from "../../package-file.ts";
import type { FromWorker, SharedProgram, ToWorker, WorkerFailure, WorkerIdentity } from "./messages.ts";

export interface WorkerPool {
  readonly size: number;
  /** Resolves when every worker has the Program. */
  readonly prepare: (id: number, shared: SharedProgram) => Promise<void>;
  /** One run on all workers. Resolves with their failures when every worker has left it. Rejects with WorkerDeath. */
  readonly run: (id: number, traced: boolean) => Promise<readonly WorkerFailure[]>;
  readonly release: (id: number) => void;
  /** Terminates the threads at once. The run in progress fails, and the next use starts new threads. */
  readonly end: () => Promise<void>;
  /** Ends the threads and drops the Programs. */
  readonly stop: () => Promise<void>;
}

export class WorkerDeath extends Error {
  override readonly name = "WorkerDeath";
  /** The worker that ended first; null if all were stopped. */
  readonly worker: number | null;

  constructor(message: string, worker: number | null = null) {
    super(message);
    this.worker = worker;
  }
}

/** The built file, even when the sources run (tests): Node 20 cannot load TypeScript in a thread. */
function workerUrl(): URL {
  return packageFile("dist/backends/cpu/threads/worker.js");
}

interface Pending {
  readonly kind: FromWorker["kind"];
  readonly replies: FromWorker[];
  readonly resolve: (replies: readonly FromWorker[]) => void;
  readonly reject: (error: Error) => void;
}

export interface PoolOptions {
  readonly workers: number;
  /** See WorkerIdentity. */
  readonly jitter?: number | null;
  /** A different worker file, for tests of failures. */
  readonly worker?: URL;
}

export function createWorkerPool({ workers: size, jitter = null, worker: url = workerUrl() }: PoolOptions): WorkerPool {
  const programs = new Map<number, SharedProgram>();
  let workers: Worker[] = [];
  let pending: Pending | null = null;

  const settle = (error: Error | null): void => {
    const waiting = pending;
    pending = null;
    if (error === null) waiting?.resolve(waiting.replies);
    else waiting?.reject(error);
  };
  const terminate = async (): Promise<void> => {
    const old = workers;
    workers = [];
    await Promise.all(old.map((worker) => worker.terminate()));
  };
  const end = async (): Promise<void> => {
    await terminate();
    settle(new WorkerDeath("the workers were stopped"));
  };
  const died = (worker: Worker, number: number, reason: string): void => {
    if (!workers.includes(worker)) return;
    void terminate();
    settle(new WorkerDeath(reason, number));
  };
  const start = (): void => {
    workers = Array.from({ length: size }, (_, number) => {
      // Flags of the process, such as --input-type, may not fit a thread that runs a file.
      const workerData = { number, workers: size, jitter } satisfies WorkerIdentity;
      const worker = new Worker(url, { workerData, execArgv: [] });
      worker.on("message", (reply: FromWorker) => {
        if (pending === null || !workers.includes(worker)) return;
        invariant(reply.kind === pending.kind, "workers answer the request in progress", reply);
        pending.replies.push(reply);
        if (pending.replies.length === size) settle(null);
      });
      worker.on("error", (error) => died(worker, number, error.stack ?? error.message));
      worker.on("exit", (code) => died(worker, number, `worker ${number} exited with status ${code}`));
      return worker;
    });
  };
  const ask = (message: ToWorker, kind: FromWorker["kind"]): Promise<readonly FromWorker[]> =>
    new Promise<readonly FromWorker[]>((resolve, reject) => {
      invariant(pending === null, "one request to the workers at a time");
      pending = { kind, replies: [], resolve, reject };
      for (const worker of workers) {
        worker.ref();
        worker.postMessage(message);
      }
    }).then((replies) => {
      // Idle workers do not keep the process alive.
      for (const worker of workers) worker.unref();
      return replies;
    });
  const prepareOn = async (id: number, shared: SharedProgram): Promise<void> => {
    for (const reply of await ask({ kind: "prepare", id, shared }, "prepared")) {
      if (reply.kind === "prepared")
        invariant(reply.failure === null, "workers prepare what the main thread linked", reply);
    }
  };
  const ensureStarted = async (): Promise<void> => {
    if (workers.length > 0) return;
    start();
    for (const [id, shared] of programs) await prepareOn(id, shared);
  };

  return {
    size,
    prepare: async (id, shared) => {
      await ensureStarted();
      await prepareOn(id, shared);
      programs.set(id, shared);
    },
    run: async (id, traced) => {
      await ensureStarted();
      const replies = await ask({ kind: "run", id, traced }, "ran");
      return replies.flatMap((reply) => (reply.kind === "ran" && reply.failure !== null ? [reply.failure] : []));
    },
    release: (id) => {
      programs.delete(id);
      for (const worker of workers) worker.postMessage({ kind: "release", id } satisfies ToWorker);
    },
    end,
    stop: async () => {
      programs.clear();
      await end();
    },
  };
}
