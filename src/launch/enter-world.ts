/** Joins a World: meets the other ranks where the launcher's variables say, and learns which of them share a host. */
import { fail } from "../diagnostics/diagnostic.ts";
import { newToken } from "./hub/handshake.ts";
import { type Hub, openHub } from "./hub/hub.ts";
import { type JoinOptions, joinWorld } from "./join-world.ts";
import { listeningAddress, meetingPoint } from "./meeting-point.ts";
import type { RankEnvironment } from "./rank-environment.ts";
import type { Environment } from "../support/environment.ts";
import { requireTopology } from "./require-topology.ts";
import { readTokenFile, removeTokenFile, writeTokenFile } from "./hub/token-file.ts";
import { exchangeClaims, hostClaim, type Topology, topologyOf } from "./topology.ts";
import { rankName } from "../backends/cuda/world.ts";
import type { Connection, World, WorldOptions } from "./world.ts";

const loopback = "127.0.0.1";

/**
 * Joins the world. Rank 0 opens its hub first if no other process has. Throws `rendezvous-failed`,
 * `launcher-environment`.
 */
export async function enterWorld(who: RankEnvironment, env: Environment, timeout: number): Promise<World> {
  let topology: Topology | null = null;
  const nameOf = (rank: number): string => (topology === null ? `rank ${rank}` : rankName(rank, topology));
  const { connection, hub } = await connect(who, env, { ...who, timeout, nameOf });
  try {
    const claims = await exchangeClaims(connection, hostClaim(env, who));
    topology = topologyOf(claims, who.rank);
    requireTopology(who.launcher, claims, topology);
    const { leave } = connection;
    return { ...connection, ...topology, leave: () => leaveWith(leave, hub) };
  } catch (error) {
    // All ranks find the same, or the world has ended. An open hub would keep the process alive.
    await leaveWith(connection.leave, hub);
    throw error;
  }
}

async function leaveWith(leave: () => Promise<void>, hub: Hub | null): Promise<void> {
  await leave();
  await hub?.allLeft();
  await hub?.close();
}

interface Connected {
  readonly connection: Connection;
  /** If this process runs it. */
  readonly hub: Hub | null;
}

async function connect(who: RankEnvironment, env: Environment, join: WorldOptions): Promise<Connected> {
  const point = meetingPoint(who, env);
  const { rank, worldSize, timeout } = join;
  switch (point.kind) {
    case "started":
      return { connection: await joinWorld({ ...join, ...point }), hub: null };
    case "address": {
      const { host, port, token, severalHosts } = point;
      if (rank !== 0) return { connection: await joinWorld({ ...join, host, port, token }), hub: null };
      const listens = await listeningAddress(host, severalHosts);
      const hub = await openHub({ worldSize, token, host: listens, port, timeout });
      return joinOwn(hub, { ...join, host, port, token });
    }
    case "file": {
      const { file } = point;
      if (rank !== 0) return { connection: await joinByFile(file, join), hub: null };
      const token = point.token ?? newToken();
      const hub = await openHub({ worldSize, token, host: loopback, port: 0, timeout });
      await writeTokenFile(file, { port: hub.port, token });
      try {
        const own = await joinOwn(hub, { ...join, host: loopback, port: hub.port, token });
        // After the barrier all ranks have read the file. If the world ends here, the next exchange says so.
        await own.connection.barrier().catch(() => {});
        return own;
      } finally {
        await removeTokenFile(file);
      }
    }
  }
}

async function joinOwn(hub: Hub, options: JoinOptions): Promise<Connected> {
  try {
    return { connection: await joinWorld(options), hub };
  } catch (error) {
    await hub.close();
    throw error;
  }
}

/** The file may be left over from another run. A rank that is rejected, or reaches no hub, reads it again. */
async function joinByFile(file: string, join: WorldOptions): Promise<Connection> {
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

function noRankZero(rank: number, timeout: number): never {
  return fail({
    code: "rendezvous-failed",
    message: `rank ${rank} could not join the others`,
    found: `rank 0 has not opened the rendezvous on this host within ${timeout / 1000} s`,
    expected: "rank 0 on the same host, started by the same user",
    help: "start all ranks together; for ranks in separate containers set MASTER_ADDR, MASTER_PORT and the same secret BRAID_TOKEN on all",
  });
}
