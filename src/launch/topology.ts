/**
 * Which ranks share a host. Ranks exchange the identity of their hosts once they have joined. Identity is NCCL's, so
 * that NCCL and Braid agree: NCCL_HOSTID if it is set, otherwise the host's name and the running kernel's boot id.
 */
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import type { Rendezvous } from "../backends/cuda/world.ts";
import type { Connection } from "./world.ts";
import type { RankEnvironment } from "./rank-environment.ts";
import type { Environment } from "../support/environment.ts";

export type Topology = Pick<Rendezvous, "localRank" | "hosts" | "hostNames">;

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
