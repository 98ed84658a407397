/**
 * The meeting point of the ranks of a run: a TCP server that collects each exchange's bytes from every rank and sends all to all. It
 * lives in the process that started the ranks, or in rank 0 where another launcher did.
 *
 * It ends the world once, for the first reason that comes: a rank aborts, a connection of a rank closes before its farewell, or an
 * exchange lacks a rank when its time is up. Whoever has not proved that he knows the token can do nothing but be refused: his frames are
 * limited to a few hundred bytes, his time to some seconds, and his number too.
 */
import { createServer, type Server, type Socket } from "node:net";
import { encodeFrame, exchangeLimit, FrameError, frameKinds, frameReader, handshakeLimit } from "./frames.ts";
import { encodeWelcome, newNonce, readHello } from "./handshake.ts";
import { encodeText, decodeText, type LastWords, type WorldEnd } from "./world-end.ts";

export interface HubOptions {
  readonly worldSize: number;
  readonly token: string;
  /** Where to listen; "127.0.0.1" unless ranks of other hosts join. */
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Milliseconds that an exchange, or the joining of all ranks, may take from its first rank on. */
  readonly timeout: number;
}

export interface Hub {
  readonly port: number;
  /** Resolves when the world has ended by failure; never if every rank says farewell. */
  readonly ended: Promise<WorldEnd>;
  /** What the ranks said they were doing when the world ended, so far. */
  lastWords(): readonly LastWords[];
  /** Ends the world from outside: a rank's process has ended, say. */
  end(end: WorldEnd): void;
  /** Resolves when every rank has said farewell or gone, or after two seconds. */
  allLeft(): Promise<void>;
  close(): Promise<void>;
}

interface Member {
  readonly socket: Socket;
  readonly rank: number;
  gone: boolean;
}

/** Strangers that may wait for their turn at the same time, and for how long. */
const mostStrangers = 128;
const strangerMilliseconds = 5000;

export async function openHub(options: HubOptions): Promise<Hub> {
  const { worldSize, token, timeout } = options;
  const members = new Map<number, Member>();
  const parts = new Map<number, Map<number, Uint8Array>>();
  const sent = new Map<number, number>();
  const timers = new Set<NodeJS.Timeout>();
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
    for (const timer of timers) clearTimeout(timer);
    timers.clear();
    const frame = encodeFrame(frameKinds.abort, encodeText(reason));
    for (const { socket, gone } of members.values()) if (!gone) socket.write(frame);
    tell(reason);
  }

  /** After `timeout`, unless `arrived` has all ranks by then, the world ends for want of the others. */
  function expect(what: string, arrived: () => Iterable<number>): NodeJS.Timeout {
    const timer = setTimeout(() => {
      const there = new Set(arrived());
      const missing = ranksWithout(worldSize, there);
      finish({ rank: missing[0] ?? 0, reason: `${namesOf(missing)} did not reach ${what} within ${timeout / 1000} s` });
    }, timeout);
    timers.add(timer);
    return timer;
  }

  function settle(timer: NodeJS.Timeout | undefined): void {
    if (timer === undefined) return;
    clearTimeout(timer);
    timers.delete(timer);
  }

  let joining: NodeJS.Timeout | undefined;
  const rounds = new Map<number, NodeJS.Timeout>();

  function receivePart(member: Member, body: Uint8Array): void {
    const round = sent.get(member.rank) ?? 0;
    sent.set(member.rank, round + 1);
    let collected = parts.get(round);
    if (collected === undefined) {
      collected = new Map();
      parts.set(round, collected);
      const own = collected;
      if (end === null)
        rounds.set(
          round,
          expect(`exchange ${round}, which the others have reached,`, () => own.keys()),
        );
    }
    collected.set(member.rank, body);
    if (collected.size < worldSize) return;
    parts.delete(round);
    settle(rounds.get(round));
    rounds.delete(round);
    const frames = Array.from({ length: worldSize }, (_, rank) =>
      encodeFrame(frameKinds.result, collected.get(rank) ?? new Uint8Array()),
    );
    for (const { socket, gone } of members.values()) {
      if (gone) continue;
      socket.cork();
      for (const frame of frames) socket.write(frame);
      socket.uncork();
    }
  }

  function accept(socket: Socket): void {
    if (strangers.size >= mostStrangers) {
      socket.destroy();
      return;
    }
    strangers.add(socket);
    socket.setNoDelay(true);
    // Whatever goes wrong with a connection ends in its `close`.
    socket.on("error", () => {});
    const patience = setTimeout(() => socket.destroy(), Math.min(strangerMilliseconds, timeout));
    const nonce = newNonce();
    const reader = frameReader(handshakeLimit);
    let member: Member | null = null;
    const greet = (kind: number, body: Uint8Array): boolean => {
      const hello = kind === frameKinds.hello ? readHello(token, nonce, body) : null;
      if (hello === null) return false;
      const { rank, worldSize: claimed } = hello.claim;
      if (claimed !== worldSize || rank >= worldSize || members.has(rank)) {
        const reason = members.has(rank)
          ? `there is a rank ${rank} already`
          : `rank ${rank} of ${claimed} joins a world of ${worldSize}`;
        socket.end(encodeFrame(frameKinds.abort, encodeText({ rank, reason })));
        return true;
      }
      strangers.delete(socket);
      clearTimeout(patience);
      member = { socket, rank, gone: false };
      members.set(rank, member);
      reader.setLimit(exchangeLimit);
      socket.write(encodeFrame(frameKinds.welcome, encodeWelcome(token, nonce, hello.nonce)));
      if (end !== null) socket.write(encodeFrame(frameKinds.abort, encodeText(end)));
      else if (members.size === worldSize) settle(joining);
      else joining ??= expect("the rendezvous", () => members.keys());
      return true;
    };
    const handle = (kind: number, body: Uint8Array): boolean => {
      if (member === null) return greet(kind, body);
      switch (kind) {
        case frameKinds.part:
          receivePart(member, body);
          return true;
        case frameKinds.abort:
          finish({ rank: member.rank, reason: decodeText(body)?.reason ?? "it gave up" });
          return true;
        case frameKinds.lastWords:
          words.push({ rank: member.rank, text: decodeText(body)?.reason ?? "" });
          return true;
        case frameKinds.farewell:
          member.gone = true;
          return true;
        default:
          return false;
      }
    };
    socket.on("data", (bytes) => {
      try {
        for (const { kind, body } of reader.push(bytes)) {
          if (!handle(kind, body)) socket.destroy();
        }
      } catch (error) {
        if (!(error instanceof FrameError)) throw error;
        socket.destroy();
      }
    });
    socket.on("close", () => {
      clearTimeout(patience);
      strangers.delete(socket);
      if (member === null || member.gone) return;
      member.gone = true;
      finish({ rank: member.rank, reason: `rank ${member.rank} ended without a word: its process died or was killed` });
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
      const left = (): boolean => [...members.values()].every(({ gone }) => gone);
      while (!left() && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 5));
    },
    async close() {
      for (const timer of timers) clearTimeout(timer);
      for (const socket of strangers) socket.destroy();
      for (const { socket } of members.values()) socket.destroy();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
    },
  };
}

function listen(server: Server, { host, port }: HubOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => {
      server.removeListener("error", reject);
      const address = server.address();
      resolve(address !== null && typeof address === "object" ? address.port : port);
    });
  });
}

function ranksWithout(worldSize: number, there: ReadonlySet<number>): readonly number[] {
  return Array.from({ length: worldSize }, (_, rank) => rank).filter((rank) => !there.has(rank));
}

function namesOf(ranks: readonly number[]): string {
  return ranks.length === 1 ? `rank ${ranks.join("")}` : `ranks ${ranks.join(", ")}`;
}
