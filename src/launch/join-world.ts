/**
 * Connects a rank to its World. The rank retries the hub until its deadline, proves that it knows the token, and has
 * the hub prove the same.
 */
import { connect } from "node:net";
import { type Diagnostic, DiagnosticError } from "../diagnostics/diagnostic.ts";
import { encodeFrame, exchangeLimit, type Frame, FrameError, frameKinds, frameReader } from "./frames.ts";
import { encodeHello, isWelcome, newNonce, nonceBytes, readRefusal } from "./handshake.ts";
import { openWorld, type World } from "./world.ts";
import { decodeText } from "./world-end.ts";

export { type World, worldEnded } from "./world.ts";

export interface JoinOptions {
  readonly rank: number;
  readonly worldSize: number;
  readonly localRank: number;
  readonly host: string;
  readonly port: number;
  readonly token: string;
  /** Milliseconds for each exchange, and for joining unless `joinTimeout` is given. */
  readonly timeout: number;
  readonly joinTimeout?: number;
}

const retryMilliseconds = 50;

/** Throws `rendezvous-failed` if the hub cannot be reached in time, rejects the rank, or is not Braid. */
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
      // Later errors end in `close`.
      socket.on("error", () => {});
      if (attempt.world === undefined) socket.destroy();
      resolve(attempt);
    };
    const patience = setTimeout(
      () => give({ why: "no answer in time", final: false }),
      Math.max(1, deadline - Date.now()),
    );
    socket.on("error", (error) => give({ why: error.message, final: false }));
    socket.on("close", () =>
      give({ why: "the connection was closed: the tokens differ, or the other side is not Braid", final: false }),
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
      const refusal =
        kind === frameKinds.refusal && hubNonce !== null ? readRefusal(options.token, hubNonce, nonce, body) : null;
      if (refusal !== null) {
        give({ why: decodeText(refusal)?.reason ?? "the hub refused", final: true });
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

function unreachable({ rank, host, port, timeout, joinTimeout = timeout }: JoinOptions, why: string): Diagnostic {
  return {
    code: "rendezvous-failed",
    message: `rank ${rank} could not join the others`,
    place: { kind: "call", text: `rendezvous at ${host}:${port}` },
    found: why,
    expected: `an answer from Braid within ${joinTimeout / 1000} s`,
    help: "check that rank 0 runs and that MASTER_ADDR, MASTER_PORT and, if set, BRAID_TOKEN are the same on all ranks",
  };
}
