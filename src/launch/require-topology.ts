/** What the CUDA back end needs of the hosts: as many ranks on each, numbered host by host, as the launcher says. */
import type { Diagnostic } from "../diagnostics/diagnostic.ts";
import { CommonError, type Hosts } from "../backends/cuda/world.ts";
import type { RankEnvironment } from "./rank-environment.ts";
import type { HostClaim } from "./topology.ts";

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
