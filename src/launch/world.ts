/**
 * A rank's connection to the others after it has joined. All ranks make the same calls in the same order. Nothing waits
 * forever: each call ends with its result, with the end of the world, or at its own timeout if the hub itself has
 * stopped.
 */
import type { Socket } from "node:net";
import type { Rendezvous } from "../backends/cuda/world.ts";
import { type Diagnostic, DiagnosticError } from "../diagnostics/diagnostic.ts";
import { encodeFrame, type WireFrame, FrameError, frameKinds, type FrameReader } from "./hub/frames.ts";

/** A rank's connection to the other ranks. `allGather` takes at most 64 MiB of each rank. */
export interface World extends Rendezvous {
  /** Reports to the hub what this rank was doing when the world ended. */
  lastWords(text: string): void;
  /** Aborts when the world ends by failure; `reason` is a DiagnosticError that names the rank. */
  readonly signal: AbortSignal;
  /** Reports that this rank has done its work, and closes. */
  leave(): Promise<void>;
}

/** A rank's connection before the ranks know each other's hosts. */
export type Connection = Omit<World, "localRank" | "hosts" | "hostNames">;

/** The hub's own timeouts come first. It answers later than this only if it has stopped. */
const graceMilliseconds = 2000;

interface Pending {
  readonly resolve: (parts: readonly Uint8Array[]) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** What the link needs; `timeout` in milliseconds, for each exchange. */
export interface WorldOptions {
  readonly rank: number;
  readonly worldSize: number;
  readonly timeout: number;
  /** How messages name a rank; by its number if omitted. */
  readonly nameOf?: (rank: number) => string;
}

/** Opens a world on a connection that the hub has accepted. `early`: frames that arrived together with the welcome. */
export function openWorld(
  options: WorldOptions,
  socket: Socket,
  reader: FrameReader,
  early: readonly WireFrame[],
): Connection {
  const { rank, worldSize, timeout, nameOf = (other) => `rank ${other}` } = options;
  const controller = new AbortController();
  const pending: Pending[] = [];
  let received: Uint8Array[] = [];
  let failure: DiagnosticError | null = null;
  let left = false;

  function finish(end: WorldEnd): void {
    if (failure !== null || left) return;
    failure = new DiagnosticError([worldEnded(end, nameOf(end.rank))]);
    for (const { reject, timer } of pending.splice(0)) {
      clearTimeout(timer);
      reject(failure);
    }
    controller.abort(failure);
  }

  function handle({ kind, body }: WireFrame): void {
    if (kind === frameKinds.abort) {
      finish(decodeWorldEnd(body) ?? { rank, reason: "the world was ended" });
    } else if (kind === frameKinds.result) {
      received.push(body);
      if (received.length < worldSize) return;
      const first = pending.shift();
      if (first === undefined) return;
      clearTimeout(first.timer);
      first.resolve(received);
      received = [];
    }
  }

  socket.on("data", (bytes) => {
    try {
      reader.push(bytes).forEach(handle);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      socket.destroy();
    }
  });
  socket.on("error", () => {});
  socket.on("close", () => finish({ rank: 0, reason: "the process that holds the rendezvous ended" }));
  early.forEach(handle);

  const allGather = (bytes: Uint8Array): Promise<readonly Uint8Array[]> => {
    if (failure !== null) return Promise.reject(failure);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () =>
          finish({
            rank: 0,
            reason: `the process that holds the rendezvous did not answer within ${timeout / 1000} s`,
          }),
        timeout + graceMilliseconds,
      );
      pending.push({ resolve, reject, timer });
      socket.write(encodeFrame(frameKinds.part, bytes));
    });
  };
  return {
    rank,
    worldSize,
    allGather,
    async barrier() {
      await allGather(new Uint8Array());
    },
    abort(reason) {
      if (failure !== null || left) return;
      socket.write(encodeFrame(frameKinds.abort, encodeWorldEnd({ rank, reason })));
      finish({ rank, reason });
    },
    lastWords(text) {
      if (!socket.destroyed) socket.write(encodeFrame(frameKinds.lastWords, encodeWorldEnd({ rank, reason: text })));
    },
    signal: controller.signal,
    leave() {
      left = true;
      return new Promise((resolve) => {
        const patience = setTimeout(() => socket.destroy(), graceMilliseconds);
        socket.once("close", () => {
          clearTimeout(patience);
          resolve();
        });
        if (socket.destroyed) socket.emit("close");
        else socket.end(encodeFrame(frameKinds.farewell, new Uint8Array()));
      });
    },
  };
}

/** The error of a world that ended by failure, the same on every rank. */
export function worldEnded({ rank, reason, interrupted }: WorldEnd, name = `rank ${rank}`): Diagnostic {
  if (interrupted === true) {
    return { code: "interrupted", message: "the run was interrupted", found: reason, expected: "a run that may end" };
  }
  return {
    code: "rank-failed",
    message: `${name} failed, so the run ended on all ranks`,
    found: reason,
    expected: "every rank to run until the end",
    help: "read that rank's own message; a killed rank leaves none",
  };
}

// The reason why a world of ranks ended early, and its encoding in frames.

export interface WorldEnd {
  /** The rank that aborted, died, or is missing. */
  readonly rank: number;
  readonly reason: string;
  /** Whether the user ended the run by a signal to its launcher; then no rank has failed. */
  readonly interrupted?: true;
}

/** A rank's report of what it was doing when the world ended, as lines of text. */
export interface LastWords {
  readonly rank: number;
  readonly text: string;
}

/**
 * Control characters, except tabs and ends of lines, and those that reorder text: on a terminal they could hide or fake
 * what it shows.
 */
// oxlint-disable-next-line no-control-regex -- that is what it looks for
const unprintable = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Longer texts are cut: a reason is a message rather than a log. */
const mostCharacters = 16_384;

export function encodeWorldEnd(end: WorldEnd): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ ...end, reason: end.reason.slice(0, mostCharacters) }));
}

function printable(text: string): string {
  return text.replace(unprintable, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Null for malformed bytes, because they come from another process. */
export function decodeWorldEnd(bytes: Uint8Array): WorldEnd | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof value !== "object" || value === null) return null;
    if (!("rank" in value) || !("reason" in value)) return null;
    const { rank, reason } = value;
    if (typeof rank !== "number" || typeof reason !== "string") return null;
    const interrupted = "interrupted" in value && value.interrupted === true;
    return { rank, reason: printable(reason.slice(0, mostCharacters)), ...(interrupted ? { interrupted } : {}) };
  } catch {
    return null;
  }
}
