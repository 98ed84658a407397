/**
 * Where ranks meet, by their launcher's variables. If Braid started them, the hub's address is known. If BRAID_TOKEN,
 * MASTER_ADDR and MASTER_PORT are set, rank 0 opens the hub on the port after MASTER_PORT, because torchrun's own store
 * occupies MASTER_PORT. Otherwise ranks of one host meet through a token file. Ranks of several hosts need the token.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { fail } from "../diagnostics/diagnostic.ts";
import type { RankEnvironment } from "./rank-environment.ts";
import type { Environment } from "../support/environment.ts";
import { tokenFile } from "./hub/token-file.ts";

/** Set by Braid's launcher: the hub already runs at MASTER_ADDR:MASTER_PORT. */
export const hubVariable = "BRAID_HUB";
export const tokenVariable = "BRAID_TOKEN";

export interface HubPlace {
  readonly host: string;
  readonly port: number;
  readonly token: string;
}

export type MeetingPoint =
  /** The hub runs in the process that started the ranks. */
  | ({ readonly kind: "started" } & HubPlace)
  /** Rank 0 opens the hub there. */
  | ({ readonly kind: "address"; readonly severalHosts: boolean } & HubPlace)
  /** Rank 0 opens the hub anywhere, and says where in the file. */
  | { readonly kind: "file"; readonly file: string; readonly token: string | null };

const loopback = "127.0.0.1";
const largestPort = 65_535;

/** Throws `launcher-environment`. */
export function meetingPoint(who: RankEnvironment, env: Environment): MeetingPoint {
  const { worldSize, localWorldSize } = who;
  const token = env[tokenVariable] === "" ? undefined : env[tokenVariable];
  const severalHosts = localWorldSize !== null && localWorldSize < worldSize;
  const { address, port } = severalHosts ? withSlurm(who, env) : who;
  if (severalHosts && (address === null || port === null)) noAddress(who, address === null);
  if (severalHosts && token === undefined) noToken(who);
  if (token === undefined || port === null) return { kind: "file", file: tokenFile(who.job), token: token ?? null };
  const place = { host: bare(address ?? loopback), token };
  if (env[hubVariable] !== undefined) return { kind: "started", ...place, port };
  if (port >= largestPort) noPort(port);
  return { kind: "address", ...place, port: port + 1, severalHosts };
}

/** An IPv6 address may come in brackets, as in URLs. */
function bare(address: string): string {
  return address.replace(/^\[(.*)\]$/, "$1");
}

/** Slurm says which host has rank 0. A port that follows from the job is the same on all hosts. */
function withSlurm({ address, port, launcher }: RankEnvironment, env: Environment) {
  const list = (launcher === "srun" ? env.SLURM_STEP_NODELIST : undefined) ?? env.SLURM_JOB_NODELIST;
  const job = Number(env.SLURM_JOB_ID);
  const step = Number(env.SLURM_STEP_ID ?? 0);
  const derived = Number.isInteger(job) && Number.isInteger(step) ? 20_000 + ((job * 31 + step) % 10_000) : null;
  return {
    address: address ?? (list === undefined || list === "" ? null : firstOfSlurm(list)),
    port: port ?? (list === undefined ? null : derived),
  };
}

/** The first host of a list such as `gpu[07-09,12],login1`. */
export function firstOfSlurm(list: string): string {
  const [first = ""] = /^(?:[^,[]|\[[^\]]*\])*/.exec(list) ?? [];
  return first.replaceAll(/\[(\d+)[^\]]*\]/g, "$1");
}

/**
 * The address on which rank 0 listens so that all ranks reach it; null for all addresses. Other hosts may resolve the
 * name to another address than this one, which often resolves its own name to a loopback address.
 */
export async function listeningAddress(host: string, severalHosts: boolean): Promise<string | null> {
  if (!severalHosts || isIP(host) !== 0) return host;
  const own = new Set(Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address)));
  const found = await lookup(host, { all: true }).catch(() => []);
  // Listening at the address itself then gives the error.
  return found.some(({ address }) => own.has(address) || address.startsWith("127.")) ? null : host;
}

const launcherFlags: Readonly<Record<RankEnvironment["launcher"], string>> = {
  torchrun: "torchrun --master-addr HOST --master-port 29500",
  mpirun: "mpirun -x MASTER_ADDR=HOST -x MASTER_PORT=29500 -x BRAID_TOKEN (HOST: the host of rank 0)",
  srun: "srun --export ALL,MASTER_ADDR=HOST,MASTER_PORT=29500 (HOST: the host of rank 0)",
};

function noAddress({ launcher, worldSize, localWorldSize }: RankEnvironment, address: boolean): never {
  return fail("launcher-environment", "ranks of several hosts do not know where to meet", {
    place: { kind: "call", text: `environment variables of ${launcher}` },
    found: `${localWorldSize} of ${worldSize} ranks on this host, and no ${address ? "MASTER_ADDR" : "MASTER_PORT"}`,
    expected: "MASTER_ADDR, an address of the host of rank 0 that all hosts reach, and MASTER_PORT",
    help: launcherFlags[launcher],
  });
}

function noToken({ launcher, worldSize, localWorldSize }: RankEnvironment): never {
  return fail("launcher-environment", "ranks of several hosts need a secret by which they know each other", {
    place: { kind: "call", text: `environment variables of ${launcher}` },
    found: `${localWorldSize} of ${worldSize} ranks on this host, and no ${tokenVariable}`,
    expected: `the same ${tokenVariable} on all ranks`,
    help: `make one with \`openssl rand -hex 32\`, and set it on every host: export ${tokenVariable}=...`,
  });
}

function noPort(port: number): never {
  return fail("launcher-environment", "there is no port after MASTER_PORT, where rank 0 opens the rendezvous", {
    place: { kind: "call", text: "environment variables of the launcher" },
    found: `MASTER_PORT=${port}`,
    expected: `MASTER_PORT below ${largestPort}`,
    help: "set MASTER_PORT to a smaller port on all ranks",
  });
}
