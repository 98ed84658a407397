/**
 * PyTorch's contenders: one Python process per rank, on this rank's device. It stays up and answers each request with
 * one line of JSON. The processes form their own world. They get the requests in the same order, because each rank
 * sends them to its own process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Environment } from "../../../src/support/environment.ts";
import type { Outcome } from "../../../src/launch/exchange.ts";

export interface PeerOptions {
  /** Program and arguments. */
  readonly command: readonly [string, ...string[]];
  readonly env: Environment;
  /** Milliseconds for an answer; `startTimeout` for the first, which loads PyTorch and connects. */
  readonly timeout: number;
  readonly startTimeout: number;
}

export type PeerAnswer = Readonly<Record<string, unknown>>;

export interface TorchPeer {
  /** The versions that the process reported when it was ready. */
  readonly ready: PeerAnswer;
  /**
   * Sends one request and returns its answer. If the process is late or has ended, this and all later requests fail.
   */
  ask(request: Readonly<Record<string, unknown>>): Promise<Outcome<PeerAnswer>>;
  /** Ends the process, by force if necessary. */
  close(): Promise<void>;
}

const mostErrorLines = 8;
const farewell = 5000;

/** Starts the process and waits until it is ready. Never rejects: a machine without PyTorch is not an error. */
export async function startPeer(options: PeerOptions): Promise<Outcome<TorchPeer>> {
  const [program, ...args] = options.command;
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], env: { ...options.env } });
  const lines = answersOf(child);
  const first = await lines.next(options.startTimeout);
  if (first.kind === "failed") {
    child.kill("SIGKILL");
    return first;
  }
  if ("failed" in first.value) {
    child.kill("SIGKILL");
    return { kind: "failed", why: String(first.value["failed"]) };
  }
  let failure: string | null = null;
  const peer: TorchPeer = {
    ready: first.value,
    ask: async (request) => {
      if (failure !== null) return { kind: "failed", why: failure };
      child.stdin?.write(`${JSON.stringify(request)}\n`);
      const answer = await lines.next(options.timeout);
      if (answer.kind === "failed") {
        failure = answer.why;
        // Its collectives may wait forever, so it is killed.
        child.kill("SIGKILL");
        return answer;
      }
      return "failed" in answer.value ? { kind: "failed", why: String(answer.value["failed"]) } : answer;
    },
    close: () => closePeer(child),
  };
  return { kind: "done", value: peer };
}

function closePeer(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    const patience = setTimeout(() => child.kill("SIGKILL"), farewell);
    child.once("close", () => {
      clearTimeout(patience);
      resolve();
    });
    child.stdin?.end(`${JSON.stringify({ do: "exit" })}\n`);
  });
}

interface Answers {
  /** Resolves to the next line that the process writes. */
  next(timeout: number): Promise<Outcome<PeerAnswer>>;
}

function answersOf(child: ChildProcess): Answers {
  const errors: string[] = [];
  const waiting: ((outcome: Outcome<PeerAnswer>) => void)[] = [];
  const early: Outcome<PeerAnswer>[] = [];
  let ended: string | null = null;
  const give = (outcome: Outcome<PeerAnswer>): void => {
    const first = waiting.shift();
    if (first === undefined) early.push(outcome);
    else first(outcome);
  };
  const end = (why: string): void => {
    ended ??= [why, ...errors].join("\n  ");
    for (const each of waiting.splice(0)) each({ kind: "failed", why: ended });
  };
  if (child.stdout !== null) createInterface({ input: child.stdout }).on("line", (line) => give(readAnswer(line)));
  if (child.stderr !== null) {
    createInterface({ input: child.stderr }).on("line", (line) => {
      errors.push(line);
      if (errors.length > mostErrorLines) errors.shift();
    });
  }
  child.stdin?.on("error", () => {});
  child.once("error", (error) => end(error.message));
  child.once("close", (status, signal) => end(`the process ended with ${signal ?? `status ${status}`}`));
  return {
    next: (timeout) => {
      const ready = early.shift();
      if (ready !== undefined) return Promise.resolve(ready);
      if (ended !== null) return Promise.resolve({ kind: "failed", why: ended });
      return new Promise((resolve) => {
        const timer = setTimeout(() => {
          waiting.splice(waiting.indexOf(settle), 1);
          resolve({ kind: "failed", why: [`no answer within ${timeout / 1000} s`, ...errors].join("\n  ") });
        }, timeout);
        const settle = (outcome: Outcome<PeerAnswer>): void => {
          clearTimeout(timer);
          resolve(outcome);
        };
        waiting.push(settle);
      });
    },
  };
}

function readAnswer(line: string): Outcome<PeerAnswer> {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === "object" && value !== null)
      return { kind: "done", value: Object.fromEntries(Object.entries(value)) };
  } catch {
    // Reported below.
  }
  return { kind: "failed", why: `an answer that cannot be parsed: ${line.slice(0, 200)}` };
}
