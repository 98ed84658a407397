/** Peers without the token are rejected, and nothing that they send crashes, blocks or delays a rank. */
import { connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { encodeFrame, frameKinds } from "../../src/launch/hub/frames.ts";
import { encodeHello, newNonce, newToken } from "../../src/launch/hub/handshake.ts";
import { type Hub, openHub } from "../../src/launch/hub/hub.ts";
import { joinWorld } from "../../src/launch/join-world.ts";
import { type Connection, decodeWorldEnd, encodeWorldEnd } from "../../src/launch/world.ts";

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

async function hub(worldSize: number, timeout = 3000): Promise<{ hub: Hub; token: string }> {
  const token = newToken();
  const opened = await openHub({ worldSize, token, host: "127.0.0.1", port: 0, timeout });
  open.push(opened);
  return { hub: opened, token };
}

function join(port: number, token: string, rank: number, worldSize: number, timeout = 3000): Promise<Connection> {
  return joinWorld({ rank, worldSize, host: "127.0.0.1", port, token, timeout });
}

/** A connection that sends these bytes; resolves when the hub has closed it. */
function stranger(port: number, bytes: Uint8Array): Promise<number> {
  return new Promise((resolve) => {
    let received = 0;
    const socket: Socket = connect({ port, host: "127.0.0.1" }, () => socket.write(bytes));
    socket.on("data", (data) => {
      received += data.length;
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(received));
  });
}

const challengeBytes = 4 + 1 + 16;

function bytesOfLength(length: number): Uint8Array {
  const bytes = new Uint8Array(64);
  new DataView(bytes.buffer).setUint32(0, length, true);
  return bytes;
}

const attacks: Readonly<Record<string, Uint8Array>> = {
  garbage: new TextEncoder().encode("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
  "an oversized frame": bytesOfLength(0xffff_ffff),
  "a frame just over the limit": bytesOfLength(513),
  "an empty frame": bytesOfLength(0),
  "a frame of no kind": encodeFrame(frameKinds.farewell, new Uint8Array(3)),
  "an abort without a greeting": encodeFrame(frameKinds.abort, new TextEncoder().encode('{"rank":0,"reason":"stop"}')),
  "a hello with the wrong token": encodeFrame(
    frameKinds.hello,
    encodeHello(newToken(), newNonce(), newNonce(), { rank: 0, worldSize: 2 }),
  ),
  "a short hello": encodeFrame(frameKinds.hello, new Uint8Array(5)),
};

describe("strangers", () => {
  it.each(Object.entries(attacks))("%s is refused, and the world meets all the same", async (_, bytes) => {
    const { hub: opened, token } = await hub(2);
    const refused = stranger(opened.port, bytes);
    const worlds = await Promise.all([0, 1].map((rank) => join(opened.port, token, rank, 2)));
    await Promise.all(worlds.map((world) => world.barrier()));
    // All that a stranger is told is a nonce.
    expect(await refused).toBe(challengeBytes);
    const parts = await Promise.all(worlds.map((world) => world.allGather(Uint8Array.of(world.rank + 10))));
    expect(parts.map((list) => list.map((part) => part[0]))).toEqual([
      [10, 11],
      [10, 11],
    ]);
    await Promise.all(worlds.map((world) => world.leave()));
  });

  it("who says nothing is closed after a while, and 300 of them keep no rank out", async () => {
    const { hub: opened, token } = await hub(1, 2000);
    const silent = Array.from({ length: 300 }, () => stranger(opened.port, new Uint8Array()));
    const world = await join(opened.port, token, 0, 1, 8000);
    await world.barrier();
    await world.leave();
    await Promise.all(silent);
  }, 15_000);

  it("400 of them, who come back whenever they are closed, delay no rank", async () => {
    const { hub: opened, token } = await hub(2);
    let over = false;
    const silent = Array.from({ length: 400 }, async () => {
      while (!over) await stranger(opened.port, new Uint8Array());
    });
    const start = performance.now();
    const worlds = await Promise.all([0, 1].map((rank) => join(opened.port, token, rank, 2, 10_000)));
    expect(performance.now() - start).toBeLessThan(2000);
    over = true;
    await Promise.all(worlds.map((world) => world.leave()));
    await opened.close();
    await Promise.all(silent);
  }, 15_000);

  it.each([
    ["an abort", encodeFrame(frameKinds.abort, encodeWorldEnd({ rank: 0, reason: "stop" }))],
    ["a refusal", encodeFrame(frameKinds.refusal, encodeWorldEnd({ rank: 0, reason: "stop ".repeat(20) }))],
  ])("who answers in the place of the hub ends no rank by %s", async (_, last) => {
    const token = newToken();
    const impostor = createServer((socket) => {
      socket.on("error", () => {}).write(encodeFrame(frameKinds.challenge, newNonce()));
      socket.once("data", () => socket.end(last));
    });
    const port = await new Promise<number>((resolve) => {
      impostor.listen(0, "127.0.0.1", () => {
        const address = impostor.address();
        resolve(address !== null && typeof address === "object" ? address.port : 0);
      });
    });
    const joining = join(port, token, 0, 1, 5000);
    await sleep(200);
    await new Promise((resolve) => impostor.close(resolve));
    const opened = await openHub({ worldSize: 1, token, host: "127.0.0.1", port, timeout: 3000 });
    open.push(opened);
    await (await joining).leave();
  });

  it("who sends a byte now and then is closed by the same time, whatever he has sent", async () => {
    const { hub: opened } = await hub(2, 600);
    const start = performance.now();
    // The first bytes of a frame that is short enough to be allowed, and never comes to its end.
    const bytes = bytesOfLength(500);
    let sent = 0;
    await new Promise<void>((resolve) => {
      const socket = connect({ port: opened.port, host: "127.0.0.1" });
      const drip = setInterval(() => socket.write(bytes.subarray(sent, ++sent)), 50);
      socket.on("error", () => {});
      socket.on("close", () => {
        clearInterval(drip);
        resolve();
      });
    });
    expect(sent).toBeGreaterThan(4);
    expect(performance.now() - start).toBeLessThan(2000);
  });

  it("a recorded greeting is worth nothing: the hub's nonce differs each time", async () => {
    const { hub: opened, token } = await hub(1);
    const recorded = encodeFrame(
      frameKinds.hello,
      encodeHello(token, newNonce(), newNonce(), { rank: 0, worldSize: 1 }),
    );
    expect(await stranger(opened.port, recorded)).toBe(challengeBytes);
  });

  it("a rank does not trust a hub without the token", async () => {
    const { hub: opened } = await hub(1);
    await expect(join(opened.port, newToken(), 0, 1, 400)).rejects.toThrow("rank 0 could not join the others");
  });

  it("refuses a second rank of one number and a world of another size, saying so", async () => {
    const { hub: opened, token } = await hub(2);
    const first = await join(opened.port, token, 0, 2);
    await expect(join(opened.port, token, 0, 2)).rejects.toThrow("rank 0 has already joined");
    await expect(join(opened.port, token, 1, 3)).rejects.toThrow("rank 1 of 3 cannot join a world of 2 ranks");
    const second = await join(opened.port, token, 1, 2);
    await Promise.all([first.barrier(), second.barrier()]);
    await Promise.all([first.leave(), second.leave()]);
  });
});

describe("a world that ends early", () => {
  it("prints no control characters of another process, and no endless text", () => {
    const told = decodeWorldEnd(encodeWorldEnd({ rank: 1, reason: "line\n\tnext \u001b[2J\r\u202ecod" }));
    expect(told?.reason).toBe("line\n\tnext \\u001b[2J\\u000d\\u202ecod");
    const long = new TextEncoder().encode(JSON.stringify({ rank: 1, reason: "x".repeat(100_000) }));
    expect(decodeWorldEnd(long)?.reason).toHaveLength(16_384);
  });

  it("names the ranks that never came", async () => {
    const { hub: opened, token } = await hub(3, 300);
    const world = await join(opened.port, token, 1, 3);
    await expect(world.barrier()).rejects.toThrow(/ranks 0, 2 did not reach (the rendezvous|exchange 0)/);
    expect(world.signal.aborted).toBe(true);
    await expect(world.allGather(new Uint8Array())).rejects.toThrow("failed, so the run ended");
  });

  it("names the rank whose connection closed", async () => {
    const { hub: opened, token } = await hub(2);
    const [first, second] = await Promise.all([0, 1].map((rank) => join(opened.port, token, rank, 2)));
    const waiting = first?.barrier();
    second?.abort("out of memory");
    await expect(waiting).rejects.toThrow("out of memory");
    expect(await opened.ended).toEqual({ rank: 1, reason: "out of memory" });
  });

  it("ends when the process with the hub does", async () => {
    const { hub: opened, token } = await hub(1);
    const world = await join(opened.port, token, 0, 1);
    const told = new Promise((resolve) => world.signal.addEventListener("abort", resolve));
    await opened.close();
    await told;
    await expect(world.barrier()).rejects.toThrow("the process that holds the rendezvous ended");
  });
});
