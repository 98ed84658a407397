/**
 * The rendezvous of a run's ranks: a TCP server that collects each exchange's bytes from every rank and sends all to
 * all. It runs in the process that started the ranks, or in rank 0 under another launcher.
 *
 * It ends the world for the first of these reasons: a rank aborts, a rank's connection closes before its farewell, or
 * an exchange lacks a rank at its deadline. A peer without the token is rejected: its frames are limited to a few
 * hundred bytes, its time to a few seconds, and the number of such peers is limited too: a new one replaces the oldest.
 */
import { createServer, type Socket } from "node:net";
import { createDeadlines, type Deadline } from "./deadlines.ts";
import { createExchanges } from "./exchanges.ts";
import {
  encodeFrame,
  exchangeLimit,
  type Frame,
  FrameError,
  frameKinds,
  frameReader,
  handshakeLimit,
  keepAliveMilliseconds,
} from "./frames.ts";
import { encodeRefusal, encodeWelcome, newNonce, readHello } from "./handshake.ts";
import { listen } from "./listen.ts";
import { encodeText, decodeText, type LastWords, type WorldEnd } from "../world-end.ts";

export interface HubOptions {
  readonly worldSize: number;
  readonly token: string;
  /** The address to listen on; null for all addresses of this machine. */
  readonly host: string | null;
  /** 0 chooses any free port. */
  readonly port: number;
  /**
   * Milliseconds from the first rank's arrival until all ranks must have arrived, for each exchange and for joining.
   */
  readonly timeout: number;
  /** Called when a rank has joined. */
  readonly onJoin?: (rank: number) => void;
  /** Called when a rank has said farewell. */
  readonly onFarewell?: (rank: number) => void;
}

export interface Hub {
  readonly port: number;
  /** Resolves when the world ends by failure; never if every rank says farewell. */
  readonly ended: Promise<WorldEnd>;
  /** What the ranks reported they were doing when the world ended, so far. */
  lastWords(): readonly LastWords[];
  /** Ends the world, for example when a rank's process has ended. */
  end(end: WorldEnd): void;
  /** Resolves when every rank has said farewell or disconnected, or after two seconds. */
  allLeft(): Promise<void>;
  close(): Promise<void>;
}

interface Connection {
  readonly socket: Socket;
  readonly rank: number;
  gone: boolean;
}

/**
 * Limits of peers that have not proven that they know the token: how many may be connected at once, and for how long.
 */
const mostStrangers = 128;
const mostNamed = 4;
const strangerMilliseconds = 5000;

export async function openHub(options: HubOptions): Promise<Hub> {
  const { worldSize, token, timeout } = options;
  const connections = new Map<number, Connection>();
  const words: LastWords[] = [];
  const strangers = new Set<Socket>();
  let end: WorldEnd | null = null;
  let tell: (end: WorldEnd) => void = () => {};
  const ended = new Promise<WorldEnd>((resolve) => {
    tell = resolve;
  });

  function finish(reason: WorldEnd): void {
    if (end !== null) return;
    end = reason;
    deadlines.clear();
    const frame = encodeFrame(frameKinds.abort, encodeText(reason));
    for (const { socket, gone } of connections.values()) if (!gone) socket.write(frame);
    tell(reason);
  }

  /** Addresses of processes that tried to join with another token. */
  const unproven = new Set<string>();
  const hint = (): string => {
    if (connections.size === worldSize || unproven.size === 0) return "";
    return `; a process at ${[...unproven].join(", ")} has another BRAID_TOKEN, or another version of Braid`;
  };
  const deadlines = createDeadlines(worldSize, timeout, (rank, reason) => finish({ rank, reason: reason + hint() }));
  const exchanges = createExchanges(worldSize, deadlines, (parts) => {
    const frames = parts.map((part) => encodeFrame(frameKinds.result, part));
    for (const { socket, gone } of connections.values()) {
      if (gone) continue;
      socket.cork();
      for (const frame of frames) socket.write(frame);
      socket.uncork();
    }
  });
  let joining: Deadline | null = null;

  /** Null for a peer that lacks the token or whose claim is not allowed. */
  function welcome(socket: Socket, nonce: Uint8Array, body: Uint8Array): Connection | "refused" | null {
    const hello = readHello(token, nonce, body);
    if (hello === null) {
      if (unproven.size < mostNamed) unproven.add((socket.remoteAddress ?? "?").replace(/^::ffff:/, ""));
      return null;
    }
    const { rank, worldSize: claimed } = hello.claim;
    if (claimed !== worldSize || rank >= worldSize || connections.has(rank)) {
      const reason = connections.has(rank)
        ? `rank ${rank} has already joined`
        : `rank ${rank} of ${claimed} cannot join a world of ${worldSize} ranks`;
      const text = encodeText({ rank, reason });
      socket.end(encodeFrame(frameKinds.refusal, encodeRefusal(token, nonce, hello.nonce, text)));
      return "refused";
    }
    const connection = { socket, rank, gone: false };
    connections.set(rank, connection);
    options.onJoin?.(rank);
    socket.write(encodeFrame(frameKinds.welcome, encodeWelcome(token, nonce, hello.nonce)));
    if (end !== null) socket.write(encodeFrame(frameKinds.abort, encodeText(end)));
    else if (connections.size === worldSize) joining?.settle();
    else joining ??= deadlines.expect("the rendezvous", () => connections.keys());
    return connection;
  }

  /** Whether the frame is one that a rank may send. */
  function hear(connection: Connection, { kind, body }: Frame): boolean {
    switch (kind) {
      case frameKinds.part:
        exchanges.take(connection.rank, body, end === null);
        return true;
      case frameKinds.abort:
        finish({ rank: connection.rank, reason: decodeText(body)?.reason ?? "it gave up" });
        return true;
      case frameKinds.lastWords:
        words.push({ rank: connection.rank, text: decodeText(body)?.reason ?? "" });
        return true;
      case frameKinds.farewell:
        connection.gone = true;
        options.onFarewell?.(connection.rank);
        return true;
      default:
        return false;
    }
  }

  function accept(socket: Socket): void {
    // The oldest makes room: a rank proves itself within milliseconds, so silent peers cannot keep it out.
    const [oldest] = strangers;
    if (oldest !== undefined && strangers.size >= mostStrangers) {
      strangers.delete(oldest);
      oldest.destroy();
    }
    strangers.add(socket);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, keepAliveMilliseconds);
    // A failing connection ends in `close`.
    socket.on("error", () => {});
    const patience = setTimeout(() => socket.destroy(), Math.min(strangerMilliseconds, timeout));
    const nonce = newNonce();
    const reader = frameReader(handshakeLimit);
    let connection: Connection | null = null;
    const handle = (frame: Frame): boolean => {
      if (connection !== null) return hear(connection, frame);
      const joined = frame.kind === frameKinds.hello ? welcome(socket, nonce, frame.body) : null;
      if (joined === null) return false;
      if (joined === "refused") return true;
      connection = joined;
      strangers.delete(socket);
      clearTimeout(patience);
      reader.setLimit(exchangeLimit);
      return true;
    };
    socket.on("data", (bytes) => {
      try {
        for (const frame of reader.push(bytes)) if (!handle(frame)) socket.destroy();
      } catch (error) {
        if (!(error instanceof FrameError)) throw error;
        socket.destroy();
      }
    });
    socket.on("close", () => {
      clearTimeout(patience);
      strangers.delete(socket);
      if (connection === null || connection.gone) return;
      connection.gone = true;
      finish({
        rank: connection.rank,
        reason: `rank ${connection.rank} ended without a message: its process died or was killed`,
      });
    });
    socket.write(encodeFrame(frameKinds.challenge, nonce));
  }

  const server = createServer(accept);
  const port = await listen(server, options);
  return {
    port,
    ended,
    lastWords: () => words,
    end: finish,
    async allLeft() {
      const deadline = Date.now() + 2000;
      const left = (): boolean => [...connections.values()].every(({ gone }) => gone);
      while (!left() && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 5));
    },
    async close() {
      deadlines.clear();
      for (const socket of strangers) socket.destroy();
      for (const { socket } of connections.values()) socket.destroy();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
    },
  };
}
