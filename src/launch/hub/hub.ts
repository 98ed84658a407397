/**
 * The rendezvous of a run's ranks: a TCP server that collects each exchange's bytes from every rank and sends all to
 * all. It runs in the process that started the ranks, or in rank 0 under another launcher.
 *
 * It ends the world for the first of these reasons: a rank aborts, a rank's connection closes before its farewell, or
 * an exchange lacks a rank at its deadline. A peer without the token is rejected: its frames are limited to a few
 * hundred bytes, its time to a few seconds, and the number of such peers is limited too: a new one replaces the oldest.
 */
import { createServer, type Server, type Socket } from "node:net";
import { type Diagnostic, DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { decodeWorldEnd, encodeWorldEnd, type LastWords, type WorldEnd } from "../world.ts";
import {
  encodeFrame,
  exchangeLimit,
  type WireFrame,
  FrameError,
  frameKinds,
  frameReader,
  handshakeLimit,
  keepAliveMilliseconds,
} from "./frames.ts";
import { encodeRefusal, encodeWelcome, hostPort, newNonce, readHello } from "./handshake.ts";

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
    const frame = encodeFrame(frameKinds.abort, encodeWorldEnd(reason));
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
      const text = encodeWorldEnd({ rank, reason });
      socket.end(encodeFrame(frameKinds.refusal, encodeRefusal(token, nonce, hello.nonce, text)));
      return "refused";
    }
    const connection = { socket, rank, gone: false };
    connections.set(rank, connection);
    options.onJoin?.(rank);
    socket.write(encodeFrame(frameKinds.welcome, encodeWelcome(token, nonce, hello.nonce)));
    if (end !== null) socket.write(encodeFrame(frameKinds.abort, encodeWorldEnd(end)));
    else if (connections.size === worldSize) joining?.settle();
    else joining ??= deadlines.expect("the rendezvous", () => connections.keys());
    return connection;
  }

  /** Whether the frame is one that a rank may send. */
  function hear(connection: Connection, { kind, body }: WireFrame): boolean {
    switch (kind) {
      case frameKinds.part:
        exchanges.take(connection.rank, body, end === null);
        return true;
      case frameKinds.abort:
        finish({ rank: connection.rank, reason: decodeWorldEnd(body)?.reason ?? "it gave up" });
        return true;
      case frameKinds.lastWords:
        words.push({ rank: connection.rank, text: decodeWorldEnd(body)?.reason ?? "" });
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
    const handle = (frame: WireFrame): boolean => {
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

// Collects the bytes of each exchange from every rank. Ranks make the same calls in the same order, so the n-th part of
// each rank belongs to exchange n.

interface Exchanges {
  /** `expects`: whether this exchange has a deadline. */
  take(rank: number, body: Uint8Array, expects: boolean): void;
}

interface Round {
  readonly parts: Map<number, Uint8Array>;
  readonly deadline: Deadline | null;
}

/** `complete` receives every rank's bytes, in rank order. */
function createExchanges(
  worldSize: number,
  deadlines: Deadlines,
  complete: (parts: readonly Uint8Array[]) => void,
): Exchanges {
  const rounds = new Map<number, Round>();
  const sent = new Map<number, number>();
  const open = (number: number, expects: boolean): Round => {
    const parts = new Map<number, Uint8Array>();
    const what = `exchange ${number}, which the others have reached,`;
    const round = { parts, deadline: expects ? deadlines.expect(what, () => parts.keys()) : null };
    rounds.set(number, round);
    return round;
  };
  return {
    take(rank, body, expects) {
      const number = sent.get(rank) ?? 0;
      sent.set(rank, number + 1);
      const { parts, deadline } = rounds.get(number) ?? open(number, expects);
      parts.set(rank, body);
      if (parts.size < worldSize) return;
      rounds.delete(number);
      deadline?.settle();
      complete(Array.from({ length: worldSize }, (_, each) => parts.get(each) ?? new Uint8Array()));
    },
  };
}

// Opens the port of the rendezvous, or says why it cannot be opened.

/** Throws `rendezvous-failed`: the port may be taken, and the host unknown or another machine. */
function listen(
  server: Server,
  { host, port }: { readonly host: string | null; readonly port: number },
): Promise<number> {
  return new Promise((resolve, refuse) => {
    const reject = (error: Error): void => {
      refuse(new DiagnosticError([cannotListen(host, port, error)]));
    };
    server.once("error", reject);
    server.listen({ ...(host === null ? {} : { host }), port }, () => {
      server.removeListener("error", reject);
      const address = server.address();
      resolve(address !== null && typeof address === "object" ? address.port : port);
    });
  });
}

function cannotListen(host: string | null, port: number, error: Error): Diagnostic {
  const taken = "code" in error && error.code === "EADDRINUSE";
  return {
    code: "rendezvous-failed",
    message: "rank 0 could not open the rendezvous",
    place: { kind: "call", text: `rendezvous at ${hostPort(host, port)}` },
    found: error.message,
    expected: "a free port of this machine",
    help: taken
      ? "set MASTER_PORT to another port, whose successor is free too, on all ranks"
      : "set MASTER_ADDR to an address of the machine of rank 0, on all ranks",
  };
}

// Deadlines by which all ranks must arrive. The first missed deadline names the missing ranks.

interface Deadlines {
  /**
   * If the deadline is not settled in time, `missed` receives `what` and the ranks that are missing. `arrived` returns
   * the ranks that have arrived by then.
   */
  expect(what: string, arrived: () => Iterable<number>): Deadline;
  /** Cancels all deadlines. */
  clear(): void;
}

interface Deadline {
  settle(): void;
}

/** `timeout` in milliseconds, counted from each `expect`. */
function createDeadlines(
  worldSize: number,
  timeout: number,
  missed: (rank: number, reason: string) => void,
): Deadlines {
  const timers = new Set<NodeJS.Timeout>();
  return {
    expect(what, arrived) {
      const timer = setTimeout(() => {
        const there = new Set(arrived());
        const missing = Array.from({ length: worldSize }, (_, rank) => rank).filter((rank) => !there.has(rank));
        missed(missing[0] ?? 0, `${namesOf(missing)} did not reach ${what} within ${timeout / 1000} s`);
      }, timeout);
      timers.add(timer);
      return {
        settle() {
          clearTimeout(timer);
          timers.delete(timer);
        },
      };
    },
    clear() {
      for (const timer of timers) clearTimeout(timer);
      timers.clear();
    },
  };
}

function namesOf(ranks: readonly number[]): string {
  return ranks.length === 1 ? `rank ${ranks.join("")}` : `ranks ${ranks.join(", ")}`;
}
