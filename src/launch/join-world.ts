/**
 * Connects a rank to its World. The rank retries the hub until its deadline, proves that it knows the token, and has
 * the hub prove the same.
 */
import { connect } from "node:net";
import { type Diagnostic, DiagnosticError } from "../diagnostics/diagnostic.ts";
import {
  encodeFrame,
  exchangeLimit,
  type WireFrame,
  FrameError,
  frameKinds,
  frameReader,
  keepAliveMilliseconds,
} from "./hub/frames.ts";
import { encodeHello, hostPort, isWelcome, newNonce, nonceBytes, readRefusal } from "./hub/handshake.ts";
import { type Connection, decodeWorldEnd, openWorld, type WorldOptions } from "./world.ts";

export { type World, worldEnded } from "./world.ts";

export interface JoinOptions extends WorldOptions {
  readonly host: string;
  readonly port: number;
  readonly token: string;
  /** Milliseconds for joining; `timeout` if omitted. */
  readonly joinTimeout?: number;
}

const retryMilliseconds = 50;

/** Throws `rendezvous-failed` if the hub cannot be reached in time, rejects the rank, or is not Braid. */
export async function joinWorld(options: JoinOptions): Promise<Connection> {
  const deadline = Date.now() + (options.joinTimeout ?? options.timeout);
  let answer: string | null = null;
  for (;;) {
    const attempt = await tryToJoin(options, deadline);
    if (attempt.world !== undefined) return attempt.world;
    if (attempt.answered) answer = attempt.why;
    if (attempt.final || Date.now() + retryMilliseconds >= deadline) {
      // What the hub did says more than that it has ended since.
      throw new DiagnosticError([unreachable(options, answer ?? attempt.why)]);
    }
    await new Promise((resolve) => setTimeout(resolve, retryMilliseconds));
  }
}

type Attempt =
  | { readonly world: Connection }
  | { readonly world?: undefined; readonly why: string; readonly answered: boolean; readonly final: boolean };

function tryToJoin(options: JoinOptions, deadline: number): Promise<Attempt> {
  return new Promise((resolve) => {
    const socket = connect({ host: options.host, port: options.port });
    socket.setNoDelay(true);
    socket.setKeepAlive(true, keepAliveMilliseconds);
    const nonce = newNonce();
    let hubNonce: Uint8Array | null = null;
    const reader = frameReader(16_384 + 256);
    const give = (attempt: Attempt): void => {
      clearTimeout(patience);
      socket.removeAllListeners();
      // Later errors end in `close`.
      socket.on("error", () => {});
      if (attempt.world === undefined) socket.destroy();
      resolve(attempt);
    };
    const patience = setTimeout(
      () => give({ why: "no answer in time", answered: false, final: false }),
      Math.max(1, deadline - Date.now()),
    );
    socket.on("error", (error) => give({ why: reasonOf(error), answered: false, final: false }));
    socket.on("close", () =>
      give({
        why: "the connection was closed: the tokens differ, or the other side is not Braid",
        answered: true,
        final: false,
      }),
    );
    const handle = ({ kind, body }: WireFrame, rest: readonly WireFrame[]): boolean => {
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
      const refusal =
        kind === frameKinds.refusal && hubNonce !== null ? readRefusal(options.token, hubNonce, nonce, body) : null;
      if (refusal !== null) {
        give({ why: decodeWorldEnd(refusal)?.reason ?? "the hub refused", answered: true, final: true });
        return true;
      }
      give({ why: "the other side is not Braid, or has another token", answered: true, final: false });
      return true;
    };
    socket.on("data", (bytes) => {
      try {
        const frames = reader.push(bytes);
        for (const [i, frame] of frames.entries()) if (handle(frame, frames.slice(i + 1))) return;
      } catch (error) {
        if (!(error instanceof FrameError)) throw error;
        give({ why: "the other side is not Braid", answered: true, final: false });
      }
    });
  });
}

/** A name with several addresses gives an error for each, and none of its own. */
function reasonOf(error: Error): string {
  if (!(error instanceof AggregateError) || error.message !== "") return error.message;
  return error.errors.map((each: unknown) => (each instanceof Error ? each.message : String(each))).join(", ");
}

function unreachable({ rank, host, port, timeout, joinTimeout = timeout }: JoinOptions, why: string): Diagnostic {
  return {
    code: "rendezvous-failed",
    message: `rank ${rank} could not join the others`,
    place: { kind: "call", text: `rendezvous at ${hostPort(host, port)}` },
    found: why,
    expected: `an answer from Braid within ${joinTimeout / 1000} s`,
    help: "check that rank 0 runs and that MASTER_ADDR, MASTER_PORT and, if set, BRAID_TOKEN are the same on all ranks",
  };
}
