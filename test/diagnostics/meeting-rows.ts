/** Fixes about ranks that meet, typed in this process by the variables that launchers set. */
import { createServer } from "node:net";
import process from "node:process";
import { notConnected, notOverMpi, requireConnection, tasksOutsideMpi } from "../../src/backends/mpi/launcher-of.ts";
import { requireSameProgram } from "../../src/launch/checked-backend.ts";
import { enterWorld, type HostClaim, requireTopology, topologyOf } from "../../src/launch/enter-world.ts";
import { meetingPoint } from "../../src/launch/meeting-point.ts";
import { mpiWorld } from "../../src/launch/mpi-world.ts";
import { rankEnvironment } from "../../src/launch/rank-environment.ts";
import type { Environment } from "../../src/support/environment.ts";
import { memoryTransports } from "../mpi/memory-transports.ts";
import { type MachineRow, partOf, row } from "./machine-row.ts";

const secret = "0123456789abcdef0123456789abcdef";

const mpirun: Environment = {
  OMPI_COMM_WORLD_RANK: "2",
  OMPI_COMM_WORLD_SIZE: "4",
  OMPI_COMM_WORLD_LOCAL_RANK: "0",
  OMPI_COMM_WORLD_LOCAL_SIZE: "2",
};
const srun: Environment = {
  SLURM_PROCID: "2",
  SLURM_STEP_NUM_TASKS: "4",
  SLURM_LOCALID: "0",
  SLURM_STEP_TASKS_PER_NODE: "2(x2)",
};
const torchrun: Environment = { RANK: "2", WORLD_SIZE: "4", LOCAL_RANK: "0", LOCAL_WORLD_SIZE: "2" };

function meet(env: Environment): void {
  const who = rankEnvironment(env);
  if (who !== null) meetingPoint(who, env);
}

/** The variables that a fix sets, `HOST` and `...` being the user's. */
function variablesOf(fix: string): Environment {
  const set = Array.from(fix.matchAll(/\b(MASTER_ADDR|MASTER_PORT|BRAID_TOKEN)(?:=([^\s,]+))?/gu));
  return Object.fromEntries(
    set.map(([, name = "", value = "..."]) => [
      name,
      value === "HOST" ? "host-of-rank-0" : value === "..." ? secret : value,
    ]),
  );
}

/** torchrun's flags set the two variables. */
function ofTorchrun(fix: string): Environment {
  const [address = "", port = ""] = [/--master-addr (\S+)/u, /--master-port (\d+)/u].map((each) => each.exec(fix)?.[1]);
  return { MASTER_ADDR: address, MASTER_PORT: port };
}

/** Both ranks of a world of two enter it, in one process. */
async function world(shared: Environment, own: readonly [Environment, Environment] = [{}, {}], ranks = [0, 1]) {
  const results = await Promise.allSettled(
    ranks.map(async (rank) => {
      const env = { RANK: String(rank), WORLD_SIZE: "2", LOCAL_RANK: String(rank), ...shared, ...own[rank] };
      const place = rankEnvironment(env);
      if (place === null) throw new Error("no rank");
      const entered = await enterWorld(place, env, 500);
      await entered.leave();
    }),
  );
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

/** A port whose successor is free, or is taken while the work lasts. */
async function withPort<T>(isTaken: boolean, work: (port: number) => Promise<T>): Promise<T> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen({ host: "127.0.0.1", port: 0 }, resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port - 1 : 0;
  const close = (): Promise<void> => new Promise((resolve) => server.close(() => resolve()));
  if (!isTaken) await close();
  try {
    return await work(port);
  } finally {
    if (isTaken) await close();
  }
}

const at = (port: number, host = "127.0.0.1"): Environment => ({
  MASTER_ADDR: host,
  MASTER_PORT: String(port),
  BRAID_TOKEN: secret,
});

const claims = (hosts: string, said: Partial<HostClaim> = {}): readonly HostClaim[] =>
  Array.from(hosts, (name, rank) => ({
    host: `boot of ${name}`,
    name,
    localRank: null,
    localWorldSize: null,
    ...(rank === 2 ? said : {}),
  }));

function topology(launcher: "torchrun" | "mpirun" | "srun", all: readonly HostClaim[]): void {
  requireTopology(launcher, all, topologyOf(all, 0));
}

/** What a launcher with the flags of the fix does with four ranks on hosts a and b. */
function placedBy(fix: string): string {
  const isByHost = /ppr:N:node|--ntasks-per-node N|--nproc-per-node|--node-rank|--map-by slot|block/u.test(fix);
  return isByHost ? "aabb" : "abab";
}

const launchers = ["torchrun", "mpirun", "srun"] as const;

export const meetings: readonly MachineRow[] = [
  row("launcher-environment", /torchrun --master-addr HOST --master-port 29500/u, (fix) =>
    meet({ ...torchrun, BRAID_TOKEN: secret, ...(fix === null ? {} : ofTorchrun(fix)) }),
  ),
  row("launcher-environment", /mpirun -x MASTER_ADDR=HOST/u, (fix) =>
    meet({ ...mpirun, BRAID_TOKEN: secret, ...(fix === null ? {} : variablesOf(fix)) }),
  ),
  row("launcher-environment", /srun --export ALL,MASTER_ADDR=HOST/u, (fix) =>
    meet({ ...srun, BRAID_TOKEN: secret, ...(fix === null ? {} : variablesOf(fix)) }),
  ),
  row("launcher-environment", /export BRAID_TOKEN=/u, (fix) =>
    meet({ ...mpirun, MASTER_ADDR: "a", MASTER_PORT: "29500", ...(fix === null ? {} : variablesOf(fix)) }),
  ),
  ...(["rank", "no rank"] as const).map((what) =>
    row("launcher-environment", /start the ranks with torchrun.* or unset these variables/u, (fix) => {
      const wrong: Environment = what === "rank" ? { ...torchrun, RANK: "9" } : { WORLD_SIZE: "4" };
      const started: Environment = what === "rank" ? torchrun : {};
      rankEnvironment(fix === null ? wrong : started);
    }),
  ),
  row("launcher-environment", /set MASTER_PORT to a smaller port/u, (fix) =>
    withPort(false, (port) => world(at(fix === null ? 65_535 : port), [{}, {}], fix === null ? [0] : [0, 1])),
  ),
  ...launchers.flatMap((launcher) => [
    row("launcher-environment", /--nproc-per-node|ppr:N:node|--ntasks-per-node N/u, (fix) =>
      topology(launcher, claims(fix === null ? "aab" : placedBy(fix))),
    ),
    row("launcher-environment", /--node-rank|--map-by slot --rank-by slot|--distribution block/u, (fix) =>
      topology(launcher, claims(fix === null ? "abab" : placedBy(fix))),
    ),
  ]),
  row("launcher-environment", /one launcher per host; .* the same NCCL_HOSTID/u, (fix) =>
    // Two containers of one host, whose ranks say 2 of 4, until they share an id.
    topology("torchrun", claims(fix === null ? "aabb" : "aaaa", { localRank: 2, localWorldSize: 4 })),
  ),
  row("launcher-environment", /-pmi-port/u, (fix) =>
    requireConnection(fix === null ? { PMI_RANK: "0", PMI_FD: "99" } : { PMI_PORT: "host:1", PMI_ID: "0" }),
  ),
  row("launcher-environment", /add the flag; `srun --mpi=list`/u, (fix) => {
    const env: Environment = {
      SLURM_PROCID: "1",
      SLURM_STEP_NUM_TASKS: "4",
      ...(fix === null ? {} : { PMIX_RANK: "1" }),
    };
    const tasks = tasksOutsideMpi(env);
    if (tasks > 1) notConnected(tasks);
  }),
  row("launcher-environment", /^add --on mpi$/u, (fix) => {
    const asked = ["run", "x.ts", ...(fix === null ? [] : partOf(fix, /--on mpi/u).split(" "))];
    if (!asked.includes("mpi")) notOverMpi(4);
  }),
  row("rendezvous-failed", /set MASTER_PORT to another port/u, (fix) =>
    withPort(fix === null, (port) => world(at(port), [{}, {}], fix === null ? [0] : [0, 1])),
  ),
  row("rendezvous-failed", /set MASTER_ADDR to an address of the machine of rank 0/u, (fix) =>
    withPort(false, (port) =>
      fix === null ? world(at(port, "203.0.113.1"), [{}, {}], [0]) : world(at(port, "127.0.0.1")),
    ),
  ),
  row("rendezvous-failed", /BRAID_TOKEN are the same on all ranks/u, (fix) =>
    withPort(false, async (port) => {
      const other: Environment = fix === null ? { BRAID_TOKEN: "another secret" } : {};
      const ranks = [0, 1].map((rank) => world(at(port), [{}, other], [rank]));
      const [, second] = await Promise.allSettled(ranks);
      if (second?.status === "rejected") throw second.reason;
    }),
  ),
  row("rendezvous-failed", /start all ranks together; .* set MASTER_ADDR, MASTER_PORT and the same secret/u, (fix) => {
    const job = { TORCHELASTIC_RUN_ID: `fixes-${process.pid}` };
    if (fix === null) return world(job, [{}, {}], [1]);
    return world(job).then(() => withPort(false, (port) => world({ ...job, ...at(port) })));
  }),
  row("rendezvous-failed", /see whether that process still runs/u, async (fix) => {
    const worlds = memoryTransports(2).map((transport) =>
      mpiWorld({ ...transport, threads: "multiple", close: () => {} }, 50),
    );
    await Promise.all(worlds.slice(0, fix === null ? 1 : 2).map((each) => each.barrier()));
  }),
  ...(["options", "files"] as const).map((what) =>
    row("program-differs", what === "options" ? /the same options/u : /compare the program files/u, async (fix) => {
      const identity = (rank: number) => {
        const isOther = rank === 1 && fix === null;
        const streams = isOther && what === "options" ? "2" : "4";
        return { hash: isOther ? "bbbb" : "aaaa", options: { "--schedule streams": streams } };
      };
      const bytes = [0, 1].map((rank) => new TextEncoder().encode(JSON.stringify(identity(rank))));
      await requireSameProgram({ allGather: () => Promise.resolve(bytes) }, identity(0));
    }),
  ),
];
