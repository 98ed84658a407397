/**
 * A rank's side of the rendezvous: connects to the hub, proves that it knows the token and has the hub prove the same, and then takes part
 * in exchanges. All ranks make the same calls in the same order. Nothing waits for ever: each call ends by its result, by the end of the
 * world, or when its own time is up, should the hub itself be stopped.
 */
import { connect, type Socket } from "node:net";
import { type Diagnostic, DiagnosticError } from "../diagnostics/diagnostic.ts";
import { encodeFrame, exchangeLimit, type Frame, FrameError, frameKinds, frameReader } from "./frames.ts";
import { encodeHello, isWelcome, newNonce, nonceBytes } from "./handshake.ts";
import { decodeText, encodeText, type WorldEnd } from "./world-end.ts";

export interface JoinOptions {
  readonly rank: number;
  readonly worldSize: number;
  readonly localRank: number;
  readonly host: string;
  readonly port: number;
  readonly token: string;
  /** Milliseconds: for joining, unless `joinTimeout` is given, and for each exchange. */
  readonly timeout: number;
  readonly joinTimeout?: number;
}

/** A rank's link to the others. Serves as a back end's `Rendezvous`. */
export interface World {
  readonly rank: number;
  readonly worldSize: number;
  readonly localRank: number;
  /** The bytes that every rank passed, in rank order; at most 64 MiB each. */
  allGather(bytes: Uint8Array): Promise<readonly Uint8Array[]>;
  /** Resolves when every rank has called it. */
  barrier(): Promise<void>;
  /** Tells all ranks, once, that this one gives up, and why. */
  abort(reason: string): void;
  /** Tells the hub what this rank was doing when the world ended. */
  lastWords(text: string): void;
  /** Aborts when the world has ended by failure; `reason` is a DiagnosticError that names the rank. */
  readonly signal: AbortSignal;
  /** Says that this rank has done its work, and closes. */
  leave(): Promise<void>;
}

/** The hub answers late only when it is stopped: its own time-outs come first. */
const graceMilliseconds = 2000;
const retryMilliseconds = 50;

/** Throws `rendezvous-failed` when the hub cannot be reached in time, refuses, or is not ours. */
export async function joinWorld(options: JoinOptions): Promise<World> {
  const deadline = Date.now() + (options.joinTimeout ?? options.timeout);
  for (;;) {
    const attempt = await tryToJoin(options, deadline);
    if (attempt.world !== undefined) return attempt.world;
    if (attempt.final || Date.now() + retryMilliseconds >= deadline) {
      throw new DiagnosticError([unreachable(options, attempt.why)]);
    }
    await new Promise((resolve) => setTimeout(resolve, retryMilliseconds));
  }
}

type Attempt =
  { readonly world: World } | { readonly world?: undefined; readonly why: string; readonly final: boolean };

function tryToJoin(options: JoinOptions, deadline: number): Promise<Attempt> {
  return new Promise((resolve) => {
    const socket = connect({ host: options.host, port: options.port });
    socket.setNoDelay(true);
    const nonce = newNonce();
    let hubNonce: Uint8Array | null = null;
    const reader = frameReader(16_384 + 256);
    const give = (attempt: Attempt): void => {
      clearTimeout(patience);
      socket.removeAllListeners();
      // What still goes wrong with it ends in its `close`.
      socket.on("error", () => {});
      if (attempt.world === undefined) socket.destroy();
      resolve(attempt);
    };
    const patience = setTimeout(
      () => give({ why: "nobody answered in time", final: false }),
      Math.max(1, deadline - Date.now()),
    );
    socket.on("error", (error) => give({ why: error.message, final: false }));
    socket.on("close", () =>
      give({ why: "the connection was closed: the tokens differ, or it is not Braid's", final: false }),
    );
    const handle = ({ kind, body }: Frame, rest: readonly Frame[]): boolean => {
      if (kind === frameKinds.challenge && hubNonce === null && body.length === nonceBytes) {
        hubNonce = body;
        socket.write(encodeFrame(frameKinds.hello, encodeHello(options.token, body, nonce, options)));
        return false;
      }
      if (kind === frameKinds.welcome && hubNonce !== null && isWelcome(options.token, hubNonce, nonce, body)) {
        reader.setLimit(exchangeLimit);
        clearTimeout(patience);
        socket.removeAllListeners();
        resolve({ world: openWorld(options, socket, reader, rest) });
        return true;
      }
      if (kind === frameKinds.abort) {
        give({ why: decodeText(body)?.reason ?? "the hub refused", final: true });
        return true;
      }
      give({ why: "the other side is not Braid, or has another token", final: false });
      return true;
    };
    socket.on("data", (bytes) => {
      try {
        const frames = reader.push(bytes);
        for (const [i, frame] of frames.entries()) if (handle(frame, frames.slice(i + 1))) return;
      } catch (error) {
        if (!(error instanceof FrameError)) throw error;
        give({ why: "the other side is not Braid", final: false });
      }
    });
  });
}

interface Pending {
  readonly resolve: (parts: readonly Uint8Array[]) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

function openWorld(
  options: JoinOptions,
  socket: Socket,
  reader: ReturnType<typeof frameReader>,
  early: readonly Frame[],
): World {
  const { rank, worldSize, localRank, timeout } = options;
  const controller = new AbortController();
  const pending: Pending[] = [];
  let received: Uint8Array[] = [];
  let failure: DiagnosticError | null = null;
  let left = false;

  function finish(end: WorldEnd): void {
    if (failure !== null || left) return;
    failure = new DiagnosticError([worldEnded(end)]);
    for (const { reject, timer } of pending.splice(0)) {
      clearTimeout(timer);
      reject(failure);
    }
    controller.abort(failure);
  }

  function handle({ kind, body }: Frame): void {
    if (kind === frameKinds.abort) {
      finish(decodeText(body) ?? { rank, reason: "the world was ended" });
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
    localRank,
    allGather,
    async barrier() {
      await allGather(new Uint8Array());
    },
    abort(reason) {
      if (failure !== null || left) return;
      socket.write(encodeFrame(frameKinds.abort, encodeText({ rank, reason })));
      finish({ rank, reason });
    },
    lastWords(text) {
      if (!socket.destroyed) socket.write(encodeFrame(frameKinds.lastWords, encodeText({ rank, reason: text })));
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

/** A world that ended by failure, as every rank tells it. */
export function worldEnded({ rank, reason }: WorldEnd): Diagnostic {
  return {
    code: "rank-failed",
    message: `rank ${rank} failed, so the run ended on all ranks`,
    found: reason,
    expected: "every rank at work until the end of the run",
    help: "read what the rank itself reports; a rank that was killed leaves no message",
  };
}

function unreachable({ rank, host, port, timeout, joinTimeout = timeout }: JoinOptions, why: string): Diagnostic {
  return {
    code: "rendezvous-failed",
    message: `rank ${rank} could not join the others`,
    place: { kind: "call", text: `rendezvous at ${host}:${port}` },
    found: why,
    expected: `an answer by Braid within ${joinTimeout / 1000} s`,
    help: "see that rank 0 runs, that MASTER_ADDR and MASTER_PORT are the same on all ranks, and BRAID_TOKEN too where it is set",
  };
}
