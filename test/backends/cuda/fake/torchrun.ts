/** `braid run --on cuda` on fake GPUs, as torchrun starts its ranks on hosts that NCCL_HOSTID emulates. */
import { type ChildProcess, execFile } from "node:child_process";
import path from "node:path";
import process from "node:process";
import { torchrun } from "../../../launch/rank-under.ts";
import type { Fakes } from "./build-fakes.ts";

const main = path.resolve(import.meta.dirname, "../../../../dist/cli/main.js");

export interface RankEnd {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

export interface StartedRank {
  readonly child: ChildProcess;
  readonly ended: Promise<RankEnd>;
}

let port = 30_000 + (process.pid % 8000) * 2;

/** One process per rank. `hosts`: by rank, the host's name. */
export function startOnHosts(
  fakes: Fakes,
  hosts: readonly string[],
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): readonly StartedRank[] {
  const perHost = hosts.filter((host) => host === hosts[0]).length;
  const shared = { BRAID_TOKEN: "a secret of this test", MASTER_PORT: String((port += 2)), ...variables };
  return hosts.map((host, rank) => {
    const place = { ...torchrun(`fakes-${process.pid}`, rank, hosts.length, perHost), NCCL_HOSTID: host };
    // oxlint-disable-next-line node/no-process-env -- what the command inherits
    const env = { ...process.env, ...fakes.env, ...place, ...shared };
    const child = execFile(process.execPath, [main, "run", ...args], { env });
    return { child, ended: endOf(child) };
  });
}

export function runOnHosts(...started: Parameters<typeof startOnHosts>): Promise<readonly RankEnd[]> {
  return Promise.all(startOnHosts(...started).map(({ ended }) => ended));
}

function endOf(child: ChildProcess): Promise<RankEnd> {
  return new Promise((resolve) => {
    let [out, err] = ["", ""];
    child.stdout?.on("data", (text: string) => (out += text));
    child.stderr?.on("data", (text: string) => (err += text));
    child.on("close", (status) => resolve({ status, out, err }));
  });
}
