/**
 * Joins a World by the launcher's variables. If Braid started the ranks, or BRAID_TOKEN, MASTER_ADDR and MASTER_PORT
 * are set, rank 0's address is known. Otherwise the ranks share a host and meet through a token file. Under other
 * launchers rank 0 runs the hub on the port after MASTER_PORT, because torchrun's own store occupies MASTER_PORT.
 */
import { fail } from "../diagnostics/diagnostic.ts";
import { newToken } from "./handshake.ts";
import { type Hub, openHub } from "./hub.ts";
import { type JoinOptions, joinWorld, type World } from "./join-world.ts";
import type { Environment, RankEnvironment } from "./rank-environment.ts";
import { createHash } from "node:crypto";
import { lstat, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import path from "node:path";

/** Set by Braid's launcher: the hub already runs at MASTER_ADDR:MASTER_PORT. */
export const hubVariable = "BRAID_HUB";
export const tokenVariable = "BRAID_TOKEN";

const loopback = "127.0.0.1";
const largestPort = 65_535;

/**
 * Joins the world. Rank 0 opens its hub first if no other process has. Throws `rendezvous-failed`,
 * `launcher-environment`.
 */
export async function enterWorld(who: RankEnvironment, env: Environment, timeout: number): Promise<World> {
  const { rank, worldSize, localRank } = who;
  if (who.localWorldSize !== worldSize) severalHosts(who);
  const join = { rank, worldSize, localRank, timeout };
  const token = env[tokenVariable];
  if (token !== undefined && who.port !== null) {
    const host = who.address ?? loopback;
    if (env[hubVariable] !== undefined) return joinWorld({ ...join, host, port: who.port, token });
    const port = who.port + 1;
    if (port > largestPort) noPort(who.port);
    const hub = rank === 0 ? await openHub({ worldSize, token, host, port, timeout }) : null;
    return held(hub, await joinWorld({ ...join, host, port, token }));
  }
  const file = tokenFile(who.job);
  if (rank !== 0) return joinByFile(file, join);
  const own = token ?? newToken();
  const hub = await openHub({ worldSize, token: own, host: loopback, port: 0, timeout });
  await writeTokenFile(file, { port: hub.port, token: own });
  try {
    const world = await joinWorld({ ...join, host: loopback, port: hub.port, token: own });
    // After the barrier all ranks have read the file.
    await world.barrier();
    return held(hub, world);
  } finally {
    await removeTokenFile(file);
  }
}

/** The file may be left over from another run. A rank that is rejected, or reaches no hub, reads it again. */
async function joinByFile(file: string, join: Omit<JoinOptions, "host" | "port" | "token">): Promise<World> {
  const deadline = Date.now() + join.timeout;
  for (;;) {
    const place = await readTokenFile(file);
    if (place !== null) {
      const options = { ...join, host: loopback, ...place, joinTimeout: Math.min(1000, join.timeout) };
      const world = await joinWorld(options).catch((error: unknown) => {
        if (Date.now() >= deadline) throw error;
        return null;
      });
      if (world !== null) {
        await world.barrier();
        return world;
      }
    }
    if (Date.now() >= deadline) noRankZero(join.rank, join.timeout);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A world that also closes the hub when rank 0 leaves it. */
function held(hub: Hub | null, world: World): World {
  if (hub === null) return world;
  return {
    ...world,
    async leave() {
      await world.leave();
      await hub.allLeft();
      await hub.close();
    },
  };
}

function noRankZero(rank: number, timeout: number): never {
  return fail({
    code: "rendezvous-failed",
    message: `rank ${rank} could not join the others`,
    found: `rank 0 has not opened the rendezvous on this host within ${timeout / 1000} s`,
    expected: "rank 0 on the same host, started by the same user",
    help: "start all ranks together; for ranks in separate containers set MASTER_ADDR, MASTER_PORT and the same secret BRAID_TOKEN on all",
  });
}

function noPort(port: number): never {
  return fail({
    code: "launcher-environment",
    message: "there is no port after MASTER_PORT, where rank 0 opens the rendezvous",
    place: { kind: "call", text: "environment variables of the launcher" },
    found: `MASTER_PORT=${port}`,
    expected: `MASTER_PORT below ${largestPort}`,
    help: "set MASTER_PORT to a smaller port on all ranks",
  });
}

function severalHosts({ worldSize, localWorldSize, launcher }: RankEnvironment): never {
  return fail({
    code: "launcher-environment",
    message: "the ranks are spread over several hosts",
    place: { kind: "call", text: `environment variables of ${launcher}` },
    found: `${localWorldSize} of ${worldSize} ranks on this host`,
    expected: "all ranks on one host, whose GPUs reach each other's memory",
    help: "start all ranks on one host",
  });
}

/**
 * How ranks of one host find rank 0 without BRAID_TOKEN. Rank 0 writes its port and token into a file named after the
 * launcher's job, which only this user can read, and removes it when all ranks have joined. A user who can read the
 * file could debug the process anyway, so nothing leaks.
 */
interface HubAddress {
  readonly port: number;
  readonly token: string;
}

export function tokenFile(job: string): string {
  const name = createHash("sha256").update(job).digest("hex").slice(0, 24);
  return path.join(tmpdir(), `braid-${userInfo().uid}-${name}`);
}

/** Atomically replaces an older file of the same name. */
export async function writeTokenFile(file: string, { port, token }: HubAddress): Promise<void> {
  const draft = `${file}.${newToken().slice(0, 16)}`;
  await writeFile(draft, JSON.stringify({ port, token }), { mode: 0o600, flag: "wx" });
  await rename(draft, file);
}

async function removeTokenFile(file: string): Promise<void> {
  await rm(file, { force: true });
}

/** Null if there is no file, or if it belongs to another user or is readable by others. */
export async function readTokenFile(file: string): Promise<HubAddress | null> {
  try {
    const status = await lstat(file);
    if (!status.isFile() || status.uid !== userInfo().uid || (status.mode & 0o077) !== 0) return null;
    const value: unknown = JSON.parse(await readFile(file, "utf8"));
    if (typeof value !== "object" || value === null || !("port" in value) || !("token" in value)) return null;
    const { port, token } = value;
    return typeof port === "number" && typeof token === "string" ? { port, token } : null;
  } catch {
    return null;
  }
}
