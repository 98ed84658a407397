/** The launcher of an MPI process, by the variables that it sets, and whether an MPI library can reach it. */
import { fstatSync, readFileSync, realpathSync } from "node:fs";
import process from "node:process";
import { fail } from "../../diagnostics/diagnostic.ts";
import type { Environment } from "../../support/environment.ts";
import type { MpiAbi } from "./abi.ts";

export interface MpiLauncher {
  /** The library that the launcher belongs to. */
  readonly abi: MpiAbi["name"];
  /** This process's number. */
  readonly rank: number;
}

/** Null for a process without a launcher, and for a task of srun without a flag for MPI. */
export function launcherOf(env: Environment): MpiLauncher | null {
  const openMpi = env.OMPI_COMM_WORLD_RANK ?? env.PMIX_RANK;
  if (openMpi !== undefined) return { abi: "Open MPI", rank: Number(openMpi) };
  // mpirun -pmi-port has a port and a number in place of a descriptor and a rank.
  const mpich = env.PMI_RANK ?? env.PMI_ID;
  if (mpich !== undefined) return { abi: "MPICH", rank: Number(mpich) };
  return null;
}

/** Tasks of the srun that started this process without variables for MPI; 1 without srun. */
export function tasksOutsideMpi(env: Environment): number {
  return launcherOf(env) === null ? Number(env.SLURM_STEP_NUM_TASKS ?? 1) : 1;
}

/**
 * Throws `launcher-environment` if MPICH's library would end the process: its launchers talk over an open descriptor,
 * which Node, and so npx, closes for the programs that it starts. It leaves some descriptors open, so that of npx's
 * processes some would wait for the others.
 */
export function requireConnection(env: Environment): void {
  const { PMI_FD: descriptor } = env;
  if (launcherOf(env)?.abi !== "MPICH" || descriptor === undefined) return;
  if (isConnection(Number(descriptor)) && !isBehindNpm(env)) return;
  const [, script] = process.argv;
  const started = script === undefined ? "node" : `node ${realpathSync(script)}`;
  fail("launcher-environment", "the connection to the MPI launcher was closed before Braid started", {
    place: { kind: "call", text: "environment variables of the launcher" },
    found: `PMI_FD=${descriptor}, which is no open connection on all processes`,
    expected: "the connection that the launcher opened for this process",
    help: `npx closes it: start \`${started}\` instead, or give MPICH's mpirun the flag -pmi-port`,
  });
}

/** Throws `launcher-environment`: each task would be a world of its own. */
export function notConnected(tasks: number): never {
  return fail("launcher-environment", "srun did not connect the processes for MPI", {
    place: { kind: "call", text: "environment variables of srun" },
    found: `${tasks} tasks, and neither PMIX_RANK nor PMI_RANK`,
    expected: "srun --mpi=pmix for Open MPI, srun --mpi=pmi2 for MPICH",
    help: "add the flag; `srun --mpi=list` shows what this Slurm has",
  });
}

/** Whether the launcher started npm, rather than npm the launcher: then the parent has the launcher's variable, too. */
function isBehindNpm(env: Environment): boolean {
  if (env.npm_command === undefined) return false;
  try {
    return readFileSync(`/proc/${process.ppid}/environ`, "utf8").split("\0").includes(`PMI_FD=${env.PMI_FD}`);
  } catch {
    return false;
  }
}

/** MPICH's and Slurm's are sockets. A closed descriptor's number may meanwhile be that of a pipe of Node's. */
function isConnection(descriptor: number): boolean {
  try {
    return fstatSync(descriptor).isSocket();
  } catch {
    return false;
  }
}

/** Throws `launcher-environment`, of a run on the CPU that does not go over MPI. */
export function notOverMpi(processes: number): never {
  return fail({
    code: "launcher-environment",
    message: "a launcher started several processes, of which each would run the whole program",
    place: { kind: "option", text: "--on cpu" },
    found: `${processes} processes`,
    expected: "--on mpi, whose processes share the ranks, or one process",
    help: "add --on mpi",
  });
}
