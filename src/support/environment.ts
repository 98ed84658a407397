/** A process's environment variables, and what Slurm says in them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The numbers of tasks on the hosts of a step of Slurm. */
export const slurmTasks = "SLURM_STEP_TASKS_PER_NODE";

/**
 * Of this host; empty if it is not given. It is an entry of a list by hosts, in which `4(x2),3` stands for 4, 4 and 3.
 */
export function slurmTasksHere(env: Environment): string {
  const entries = (env[slurmTasks] ?? "").split(",").flatMap((entry) => {
    const [, value = entry, times = "1"] = /^(\d+)\(x(\d{1,5})\)$/.exec(entry) ?? [];
    return Array.from({ length: Number(times) }, () => value);
  });
  return entries[Number(env["SLURM_NODEID"] ?? 0)] ?? "";
}
