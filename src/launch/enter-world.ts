/** Joins a World: meets the other ranks where the launcher's variables say, and learns which of them share a host. */
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { CommonError, type Hosts, rankName, type Rendezvous } from "../backends/cuda/world.ts";
import { type Diagnostic, fail } from "../diagnostics/diagnostic.ts";
import type { Environment } from "../support/environment.ts";
import { newToken } from "./hub/handshake.ts";
import { type Hub, openHub } from "./hub/hub.ts";
import { readTokenFile, removeTokenFile, writeTokenFile } from "./hub/token-file.ts";
import { type JoinOptions, joinWorld } from "./join-world.ts";
import { listeningAddress, meetingPoint } from "./meeting-point.ts";
import type { RankEnvironment } from "./rank-environment.ts";
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
  return fail("rendezvous-failed", `rank ${rank} could not join the others`, {
    found: `rank 0 has not opened the rendezvous on this host within ${timeout / 1000} s`,
    expected: "rank 0 on the same host, started by the same user",
    help: "start all ranks together; for ranks in separate containers set MASTER_ADDR, MASTER_PORT and the same secret BRAID_TOKEN on all",
  });
}

// What the CUDA back end needs of the hosts: as many ranks on each, numbered host by host, as the launcher says.

type Launcher = RankEnvironment["launcher"];

/** The same on all ranks. Throws `launcher-environment`. */
export function requireTopology(launcher: Launcher, claims: readonly HostClaim[], { hosts, hostNames }: Hosts): void {
  const sizes = hostNames.map((_, number) => hosts.filter((host) => host === number).length);
  if (sizes.some((size) => size !== sizes[0])) unequal(launcher, sizes, hostNames);
  const size = sizes[0] ?? 0;
  const astray = hosts.findIndex((host, rank) => host !== Math.floor(rank / size));
  if (astray >= 0) scattered(launcher, { hosts, hostNames }, astray);
  for (const [rank, { localRank, localWorldSize }] of claims.entries()) {
    if ((localRank ?? rank % size) === rank % size && (localWorldSize ?? size) === size) continue;
    const said = `local rank ${localRank ?? "not given"} of ${localWorldSize ?? "not given"}`;
    const host = hostNames[hosts[rank] ?? -1] ?? "";
    contradicted(launcher, rank, said, `local rank ${rank % size} of ${size} on host ${host}`);
  }
}

function failAll(diagnostic: Diagnostic): never {
  throw new CommonError([diagnostic]);
}

function place(launcher: Launcher): { readonly kind: "call"; readonly text: string } {
  return { kind: "call", text: `environment variables of ${launcher}` };
}

const equalNumbers: Readonly<Record<Launcher, string>> = {
  torchrun: "start torchrun with the same --nproc-per-node on all hosts",
  mpirun: "start mpirun with --map-by ppr:N:node, for N ranks on every host",
  srun: "start srun with --ntasks-per-node N",
};

function unequal(launcher: Launcher, sizes: readonly number[], names: readonly string[]): never {
  return failAll({
    code: "launcher-environment",
    message: "the hosts have different numbers of ranks",
    place: place(launcher),
    found: names.map((name, host) => `${sizes[host]} on host ${name}`).join(", "),
    expected: "the same number of ranks on every host",
    help: equalNumbers[launcher],
  });
}

const blocks: Readonly<Record<Launcher, string>> = {
  torchrun: "give each host one torchrun, with its own --node-rank",
  mpirun: "start mpirun with --map-by slot --rank-by slot",
  srun: "start srun with --distribution block",
};

function scattered(launcher: Launcher, { hosts, hostNames }: Hosts, rank: number): never {
  const shown = Array.from({ length: rank + 1 }, (_, each) => `rank ${each} on ${hostNames[hosts[each] ?? -1]}`);
  return failAll({
    code: "launcher-environment",
    message: "the ranks of a host do not follow each other",
    place: place(launcher),
    found: `${shown.length > 4 ? "..., " : ""}${shown.slice(-4).join(", ")}`,
    expected: "ranks that are numbered host by host",
    help: blocks[launcher],
  });
}

function contradicted(launcher: Launcher, rank: number, said: string, is: string): never {
  return failAll({
    code: "launcher-environment",
    message: "the launcher and the hosts of the ranks contradict each other",
    place: place(launcher),
    found: `rank ${rank} is ${is}`,
    expected: `${said}, as ${launcher} says`,
    help: "start one launcher per host; for containers that share GPUs set the same NCCL_HOSTID, for emulated hosts start one launcher per NCCL_HOSTID",
  });
}

// Which ranks share a host. Ranks exchange the identity of their hosts once they have joined. Identity is NCCL's, so
// that NCCL and Braid agree: NCCL_HOSTID if it is set, otherwise the host's name and the running kernel's boot id.

type Topology = Pick<Rendezvous, "localRank" | "hosts" | "hostNames">;

/** What a rank says about its place. */
export interface HostClaim {
  /** Equal for two ranks of one host. */
  readonly host: string;
  readonly name: string;
  /** The launcher's numbers; null if it gives none. */
  readonly localRank: number | null;
  readonly localWorldSize: number | null;
}

export function hostClaim(
  env: Environment,
  launcher: Pick<RankEnvironment, "localRank" | "localWorldSize">,
): HostClaim {
  const { localRank, localWorldSize } = launcher;
  const given = env.NCCL_HOSTID;
  const [host, name] =
    given === undefined || given === ""
      ? [`${hostname()} ${bootId()}`, hostname()]
      : [`NCCL_HOSTID ${given}`, given.slice(0, longestName)];
  return { host, name, localRank, localWorldSize };
}

const longestName = 64;

/** Empty where the system has none; the host's name must do. */
function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "";
  }
}

/** Collective: the claims of all ranks, by rank. */
export async function exchangeClaims(world: Connection, own: HostClaim): Promise<readonly HostClaim[]> {
  const parts = await world.allGather(new TextEncoder().encode(JSON.stringify(own)));
  return parts.map((bytes) => readClaim(bytes));
}

export function topologyOf(claims: readonly HostClaim[], rank: number): Topology {
  const numbers = new Map<string, number>();
  const names: string[] = [];
  const hosts = claims.map(({ host, name }) => {
    const known = numbers.get(host);
    if (known !== undefined) return known;
    const number = numbers.size;
    numbers.set(host, number);
    // Hosts of one name stay apart in messages.
    names.push(names.includes(name) ? `${name}#${number}` : name);
    return number;
  });
  const localRank = hosts.slice(0, rank).filter((host) => host === hosts[rank]).length;
  return { localRank, hosts, hostNames: names };
}

/** The claim comes from a process that knows the token, but perhaps of another version of Braid. */
function readClaim(bytes: Uint8Array): HostClaim {
  const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
  const fields = new Map<string, unknown>(typeof value === "object" && value !== null ? Object.entries(value) : []);
  const number = (name: string): number | null => {
    const field = fields.get(name);
    return typeof field === "number" ? field : null;
  };
  return {
    host: String(fields.get("host")),
    name: String(fields.get("name")),
    localRank: number("localRank"),
    localWorldSize: number("localWorldSize"),
  };
}
