/** The launcher of an MPI process, by the variables that it sets, and whether an MPI library can still reach it. */
import { fstatSync } from "node:fs";
import { fail } from "../../diagnostics/diagnostic.ts";
import type { MpiAbi } from "./abi.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface MpiLauncher {
  /** The library that the launcher belongs to. */
  readonly abi: MpiAbi["name"];
  /** This process's number. */
  readonly rank: number;
}

/** Null for a process without a launcher. */
export function launcherOf(env: Environment): MpiLauncher | null {
  const openMpi = env.OMPI_COMM_WORLD_RANK ?? env.PMIX_RANK;
  if (openMpi !== undefined) return { abi: "Open MPI", rank: Number(openMpi) };
  if (env.PMI_RANK !== undefined || env.PMI_FD !== undefined) return { abi: "MPICH", rank: Number(env.PMI_RANK ?? 0) };
  return null;
}

/** The number of a process that its launcher did not make a part of an MPI world; 0 without a launcher. */
export function launchedRank(env: Environment): number {
  return launcherOf(env)?.rank ?? Number(env.SLURM_PROCID ?? 0);
}

/**
 * Throws `launcher-environment` where the library would end the process, or take each process for a world of its own:
 * MPICH's launchers talk over an open descriptor, which Node, and so npx, closes for the programs that it starts; srun
 * needs a flag.
 */
export function requireLauncher(env: Environment): void {
  const { PMI_FD: descriptor, SLURM_STEP_NUM_TASKS: tasks } = env;
  if (descriptor !== undefined && !isConnection(Number(descriptor))) {
    fail({
      code: "launcher-environment",
      message: "the connection to the MPI launcher was closed before Braid started",
      place: { kind: "call", text: "environment variables of the launcher" },
      found: `PMI_FD=${descriptor}, which is no open connection`,
      expected: "the connection that the launcher opened for this process",
      help: "npx closes it: start node_modules/.bin/braid instead, or give MPICH's mpirun the flag -pmi-port",
    });
  }
  if (launcherOf(env) === null && Number(tasks ?? 1) > 1) {
    fail({
      code: "launcher-environment",
      message: "srun did not connect the processes for MPI",
      place: { kind: "call", text: "environment variables of srun" },
      found: `${tasks} tasks, and neither PMIX_RANK nor PMI_RANK`,
      expected: "srun --mpi=pmix for Open MPI, srun --mpi=pmi2 for MPICH",
      help: "add the flag; `srun --mpi=list` shows what this Slurm has",
    });
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
