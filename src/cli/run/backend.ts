/** The back end that `--on`, `--schedule` and `--blas` ask for. */
import { readFile } from "node:fs/promises";
import type { Backend } from "../../backends/backend.ts";
import { type BlasUse, createCpuBackend, parseSchedule } from "../../cpu.ts";
import { createCudaBackend, type GraphUse, soloRendezvous } from "../../cuda.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import type { BackendName } from "../../executor/backend-by-name.ts";
import type { World } from "../../launch/join-world.ts";
import { withProgramCheck } from "../../launch/checked-backend.ts";
import { systemReason } from "../../support/system-reason.ts";

export interface BackendFlags {
  readonly on: BackendName;
  readonly schedule?: string;
  readonly blas: BlasUse;
  readonly graph: GraphUse;
}

/** `world` is of a rank in a process of its own. Throws `option-value`, `file-unreadable`, `schedule-invalid`. */
export async function chooseBackend(
  { on, schedule, blas, graph }: BackendFlags,
  world: World | null,
  options: Readonly<Record<string, string>>,
): Promise<Backend> {
  if (schedule === undefined) {
    if (on === "cpu") return createCpuBackend({ blas });
    const backend = createCudaBackend({ rendezvous: world ?? soloRendezvous(), graph });
    return world === null ? backend : withProgramCheck(backend, world, options);
  }
  if (on !== "cpu") {
    fail({
      code: "option-value",
      message: "a schedule runs on the CPU only",
      place: { kind: "option", text: "--schedule" },
      found: `--on ${on}`,
      expected: "--on cpu",
      help: "remove --schedule, or run on the CPU",
    });
  }
  return createCpuBackend({ blas, schedule: parseSchedule(await scheduleText(schedule)) });
}

/** seed:S and hold:RANK:COMMAND as they are; anything else names a file. */
async function scheduleText(schedule: string): Promise<string> {
  if (/^(seed|hold):/.test(schedule)) return schedule;
  try {
    return await readFile(schedule, "utf8");
  } catch (error) {
    return fail({
      code: "file-unreadable",
      message: "the schedule cannot be read",
      place: { kind: "option", text: "--schedule" },
      found: `${schedule}: ${systemReason(error)}`,
      expected: "seed:S, hold:RANK:COMMAND, or a readable file of RANK:STREAM lines",
      help: "correct the path, or the form of the schedule",
    });
  }
}
