/**
 * The page's workers. Each user's program gets a fresh one, prepared in advance and ended after its answer or after a
 * time-out. One compiles; a newer request ends an older one that is still running.
 */
import type {
  BuildAnswer,
  BuildRequest,
  ReplayAnswer,
  ReplayRequest,
  WorkAnswer,
  WorkerLoaded,
  WorkPart,
  WorkRequest,
} from "../compiler/messages.ts";

/** Programs only build a graph. */
const buildTimeout = 3000;
const workTimeout = 60_000;
/** A compiler that has not answered for this long is replaced when a newer request comes. */
const patience = 150;

/** A worker that has the page's security policy, whichever server sends the script: workers of blobs inherit it. */
export function startWorker(file: "worker.js" | "replay-worker.js" | "types-worker.js" = "worker.js"): Worker {
  const script = new URL(file, document.baseURI).href;
  const blob = new Blob([`importScripts(${JSON.stringify(script)});`], { type: "text/javascript" });
  const url = URL.createObjectURL(blob);
  const worker = new Worker(url);
  setTimeout(() => {
    URL.revokeObjectURL(url);
  }, 30_000);
  return worker;
}

export interface Builder {
  /** Ends an earlier build that is still running, which then never answers. */
  readonly build: (request: BuildRequest, done: (answer: BuildAnswer) => void) => void;
}

/** Its script takes seconds to load on a slow or busy machine, which do not count as the program's. */
function startBuildWorker(): { readonly worker: Worker; readonly loaded: Promise<void> } {
  const worker = startWorker();
  const loaded = new Promise<void>((resolve) => {
    worker.onmessage = () => {
      resolve();
    };
  });
  return { worker, loaded };
}

export function createBuilder(): Builder {
  let spare = startBuildWorker();
  let running: (() => void) | null = null;
  return {
    build: (request, done) => {
      running?.();
      const { worker, loaded } = spare;
      let timer = 0;
      let isEnded = false;
      const stop = (): void => {
        isEnded = true;
        clearTimeout(timer);
        worker.terminate();
        if (running === stop) running = null;
      };
      const finish = (answer: BuildAnswer): void => {
        stop();
        done(answer);
      };
      running = stop;
      worker.onerror = (event) => {
        finish({ kind: "failed", stack: event.message });
      };
      void loaded.then(() => {
        if (isEnded) return;
        timer = window.setTimeout(() => {
          finish(endless());
        }, buildTimeout);
        worker.onmessage = ({ data }: MessageEvent<BuildAnswer>) => {
          finish(data);
        };
        worker.postMessage(request);
      });
      spare = startBuildWorker();
    },
  };
}

function endless(): BuildAnswer {
  return {
    kind: "refused",
    diagnostics: [
      {
        code: "program-threw",
        message: `the program did not end within ${buildTimeout / 1000} seconds, and was stopped`,
        place: { kind: "file", path: "/program.ts" },
        found: "a program that is still running",
        expected: "code that builds a Fusion and returns it",
        help: "look for an endless loop, or use fewer devices",
      },
    ],
  };
}

export interface Compiler {
  readonly work: (request: WorkRequest, answer: (part: WorkPart) => void) => void;
}

export function createCompiler(): Compiler {
  let worker = startWorker();
  let current: { readonly id: number; readonly begun: number; readonly end: () => void } | null = null;
  return {
    work: (request, answer) => {
      if (current !== null) {
        current.end();
        if (performance.now() - current.begun > patience) {
          worker.terminate();
          worker = startWorker();
        }
      }
      const timer = setTimeout(() => {
        worker.terminate();
        worker = startWorker();
        answer({ kind: "failed", stack: `The compiler did not end within ${workTimeout / 1000} seconds.` });
        answer({ kind: "done", milliseconds: workTimeout });
      }, workTimeout);
      const end = (): void => {
        clearTimeout(timer);
      };
      current = { id: request.id, begun: performance.now(), end };
      worker.onmessage = ({ data }: MessageEvent<WorkAnswer | WorkerLoaded>) => {
        if ("kind" in data || data.id !== request.id) return;
        const { answer: part } = data;
        if (part.kind === "done") {
          end();
          current = null;
        }
        answer(part);
      };
      worker.onerror = (event) => {
        end();
        answer({ kind: "failed", stack: event.message });
        answer({ kind: "done", milliseconds: 0 });
      };
      worker.postMessage(request);
    },
  };
}

/** Ends the worker after its answer, or when the returned function is called. */
export function replayOnce(request: ReplayRequest, done: (answer: ReplayAnswer) => void): () => void {
  const worker = startWorker("replay-worker.js");
  const stop = (): void => {
    clearTimeout(timer);
    worker.terminate();
  };
  const finish = (answer: ReplayAnswer): void => {
    stop();
    done(answer);
  };
  const timer = setTimeout(() => {
    finish({ kind: "failed", stack: `The replay did not end within ${workTimeout / 1000} seconds.` });
  }, workTimeout);
  worker.onmessage = ({ data }: MessageEvent<ReplayAnswer>) => {
    finish(data);
  };
  worker.onerror = (event) => {
    finish({ kind: "failed", stack: event.message });
  };
  worker.postMessage(request);
  return stop;
}
