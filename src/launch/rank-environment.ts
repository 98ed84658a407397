/**
 * Reads this process's rank from its launcher's environment variables: Braid itself and torchrun (RANK, WORLD_SIZE,
 * LOCAL_RANK, MASTER_ADDR, MASTER_PORT), Open MPI's mpirun (OMPI_COMM_WORLD_*), Slurm's srun (SLURM_STEP_*). The first
 * launcher found counts. Two launchers that describe the same world differently are an error, because one of them is a
 * leftover.
 */
import { fail } from "../diagnostics/diagnostic.ts";
import type { Environment } from "../support/environment.ts";
import { slurmTasks, slurmTasksHere } from "../support/environment.ts";

export interface RankEnvironment {
  readonly launcher: "torchrun" | "mpirun" | "srun";
  readonly rank: number;
  readonly worldSize: number;
  /** Position among the ranks of the host, and their number; null if the launcher does not give them. */
  readonly localRank: number | null;
  readonly localWorldSize: number | null;
  /** The address of rank 0's host, if the launcher gives it. */
  readonly address: string | null;
  readonly port: number | null;
  /** Tells this run from others of the same user on the same host. */
  readonly job: string;
}

/** The variables that hold each fact. */
interface Names {
  readonly launcher: RankEnvironment["launcher"];
  readonly rank: string;
  readonly worldSize: string;
  readonly localRank: string;
  readonly localWorldSize: string;
  readonly job: readonly string[];
}

const launchers: readonly Names[] = [
  {
    launcher: "torchrun",
    rank: "RANK",
    worldSize: "WORLD_SIZE",
    localRank: "LOCAL_RANK",
    localWorldSize: "LOCAL_WORLD_SIZE",
    job: ["TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"],
  },
  {
    launcher: "mpirun",
    rank: "OMPI_COMM_WORLD_RANK",
    worldSize: "OMPI_COMM_WORLD_SIZE",
    localRank: "OMPI_COMM_WORLD_LOCAL_RANK",
    localWorldSize: "OMPI_COMM_WORLD_LOCAL_SIZE",
    job: ["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"],
  },
  {
    launcher: "srun",
    rank: "SLURM_PROCID",
    worldSize: "SLURM_STEP_NUM_TASKS",
    localRank: "SLURM_LOCALID",
    localWorldSize: slurmTasks,
    job: ["SLURM_JOB_ID", "SLURM_STEP_ID"],
  },
];

/**
 * Null for a process without a launcher. A batch script of Slurm has SLURM_PROCID too, but the variables of a step only
 * if srun started it. A step of one task counts as no launcher, because it may be a shell, or torchrun's. Throws
 * `launcher-environment`.
 */
export function rankEnvironment(env: Environment): RankEnvironment | null {
  const speaking = launchers.filter((names) => env[names.rank] !== undefined && env[names.worldSize] !== undefined);
  const [names] = speaking.filter(({ launcher, worldSize }) => launcher !== "srun" || env[worldSize] !== "1");
  if (names === undefined) {
    if (env.RANK !== undefined || env.WORLD_SIZE !== undefined) {
      const [given, missing] = env.RANK === undefined ? ["WORLD_SIZE", "RANK"] : ["RANK", "WORLD_SIZE"];
      incomplete(`${given} without ${missing}`, `${given} and ${missing}, or neither`);
    }
    return null;
  }
  const rank = number(env, names.rank, 0);
  const worldSize = number(env, names.worldSize, 1);
  if (rank >= worldSize)
    incomplete(`${names.rank}=${rank}, ${names.worldSize}=${worldSize}`, `${names.rank} below ${names.worldSize}`);
  for (const other of speaking) {
    // srun may start one torchrun or mpirun per host, whose variables then count more ranks than Slurm's tasks.
    if (other.launcher === "srun" || other === names) continue;
    const theirs = [number(env, other.rank, 0), number(env, other.worldSize, 1)];
    if (theirs[0] !== rank || theirs[1] !== worldSize) {
      incomplete(
        `${names.rank}=${rank}, ${names.worldSize}=${worldSize}, but ${other.rank}=${theirs[0]}, ${other.worldSize}=${theirs[1]}`,
        "one launcher, or launchers that agree",
      );
    }
  }
  const localRank = env[names.localRank] === undefined ? null : number(env, names.localRank, 0);
  const localWorldSize = env[names.localWorldSize] === undefined ? null : number(env, names.localWorldSize, 1);
  return {
    launcher: names.launcher,
    rank,
    worldSize,
    localRank,
    localWorldSize,
    address: env.MASTER_ADDR ?? null,
    port: env.MASTER_PORT === undefined ? null : number(env, "MASTER_PORT", 1, 65_535),
    job: [names.launcher, ...names.job.map((name) => env[name] ?? "")].join("-"),
  };
}

function number(env: Environment, name: string, least: number, most = Number.MAX_SAFE_INTEGER): number {
  const text = env[name] ?? "";
  const digits = name === slurmTasks ? slurmTasksHere(env) : text;
  const value = /^\d{1,9}$/.test(digits) ? Number(digits) : Number.NaN;
  if (!(value >= least)) incomplete(`${name}=${text}`, `${name} as a whole number of at least ${least}`);
  if (value > most) incomplete(`${name}=${text}`, `${name} as a whole number of at most ${most}`);
  return value;
}

function incomplete(found: string, expected: string): never {
  return fail("launcher-environment", "the environment does not say which rank this process is", {
    place: { kind: "call", text: "environment variables of the launcher" },
    found,
    expected,
    help: "start the ranks with torchrun, mpirun, srun or `braid run --devices N`, or unset these variables",
  });
}
