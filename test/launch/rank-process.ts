/**
 * A rank as a process: joins the world, makes the exchanges that its argument requests, and leaves. Its work stands in
 * for a back end's.
 */
import { connect, createServer } from "node:net";
import process from "node:process";
import { endWithParent } from "../../src/cli/ranks/run-as-rank.ts";
import { enterWorld } from "../../src/launch/enter-world.ts";
import { hubVariable } from "../../src/launch/meeting-point.ts";
import { rankEnvironment } from "../../src/launch/rank-environment.ts";
import type { World } from "../../src/launch/join-world.ts";
import { requireSameProgram } from "../../src/launch/checked-backend.ts";

const [what = "work", who = "-1", timeout = "5000"] = process.argv.slice(2);
const place = rankEnvironment(process.env);
if (place === null) throw new Error("no launcher");
if (process.env[hubVariable] !== undefined) endWithParent(() => process.exit(3));

const { rank, worldSize } = place;
const mine = Number(who) === rank;
try {
  const port = mine && what === "drops" && place.port !== null ? await proxyOf(place.port) : place.port;
  const world = await enterWorld({ ...place, port }, process.env, Number(timeout));
  const fails = new Promise<never>((_, reject) => {
    world.signal.addEventListener("abort", () => {
      world.lastWords(`rank ${rank} was in ${what}`);
      // The words are on their way when the connection's buffer is empty.
      setTimeout(() => reject(world.signal.reason as Error), 50);
    });
  });
  await Promise.race([work(world), fails]);
  if (mine && what === "stops") process.kill(process.pid, "SIGSTOP");
  await world.leave();
  if (mine && what === "lingers") process.kill(process.pid, "SIGSTOP");
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(3);
}

/** The port of a proxy in the hub's place, which drops the connection at a random moment. */
async function proxyOf(port: number): Promise<number> {
  const server = createServer((socket) => {
    const hub = connect(port, "127.0.0.1");
    for (const end of [socket, hub]) end.on("error", () => {});
    socket.pipe(hub).pipe(socket);
    setTimeout(() => {
      socket.destroy();
      hub.destroy();
    }, Math.random() * 300);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  const address = server.address();
  return address !== null && typeof address === "object" ? address.port : 0;
}

async function work(world: World): Promise<void> {
  await world.barrier();
  if (what === "differs") {
    const options = { "--schedule streams": mine ? "2" : "4", "--devices": String(worldSize) };
    await requireSameProgram(world, { hash: mine ? "aaaa" : "bbbb", options });
  }
  if (mine && what === "killed") process.kill(process.pid, "SIGKILL");
  if (mine && what === "hangs") await new Promise((resolve) => setTimeout(resolve, 60_000));
  if (what === "idles") await new Promise((resolve) => setTimeout(resolve, 60_000));
  if (mine && what === "spins") for (;;);
  // As a loop of runs that end before the wait for them gives its turn away.
  if (mine && what === "starves") for (;;) await Promise.resolve();
  if (mine && what === "status") process.exit(5);
  if (what === "loops" || what === "drops") for (;;) await world.allGather(new Uint8Array(1000));
  if (mine && what === "aborts") world.abort("a kernel did not finish");
  for (let round = 0; round < 20; round++) {
    const parts = await world.allGather(Uint8Array.of(rank, round));
    parts.forEach((part, from) => {
      if (part[0] !== from || part[1] !== round) throw new Error(`exchange ${round} of rank ${from} is wrong`);
    });
  }
  const big = await world.allGather(new Uint8Array(rank * 1_000_000).fill(rank));
  if (!big.every((part, from) => part.length === from * 1_000_000 && part.every((byte) => byte === from))) {
    throw new Error("large parts are wrong");
  }
  if (what === "hosts") {
    const { hosts, hostNames, localRank } = world;
    return void process.stdout.write(`${hosts.join(" ")}: ${hostNames.join(", ")}; ${localRank}`);
  }
  if (rank === 0) process.stdout.write(`${worldSize} ranks did their work\n`);
  else process.stdout.write("only rank 0 speaks\n");
}
