/** The back end that `--on`, `--schedule` and `--blas` ask for. */
import { readFile } from "node:fs/promises";
import type { Backend } from "../../backends/backend.ts";
import { type BlasUse, createCpuBackend, parseSchedule } from "../../cpu.ts";
import { createCudaBackend, type GraphUse, soloRendezvous } from "../../cuda.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import type { Target } from "../../compile/compile.ts";
import { withProgramCheck } from "../../launch/checked-backend.ts";
import type { World } from "../../launch/join-world.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import { systemReason } from "../../support/system-reason.ts";
import { loweringFlagsOf } from "../flags/lowering-flags.ts";
import { scheduleFlagsOf } from "../flags/recording-flags.ts";
import type { CompileFlags } from "../program/compile-file.ts";

export interface BackendFlags {
  readonly on: Target;
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

/** What ranks in processes must have in common, by the names of the command line. */
export function commonOptions(
  file: string,
  flags: CompileFlags & { readonly seed: number },
  lowering: Partial<LoweringOptions>,
): Readonly<Record<string, string>> {
  const { devices, streams, set, size, seed, scheduleChoice } = flags;
  const list = (values: ReadonlyMap<string, number>): string => [...values].map((entry) => entry.join("=")).join(" ");
  return {
    FILE: file,
    "--devices": String(devices),
    "--streams": String(streams),
    "--schedule-choice": scheduleChoice,
    "--set": list(set),
    "--size": list(size),
    "--seed": String(seed),
    ...Object.fromEntries([...scheduleFlagsOf(flags), ...loweringFlagsOf(lowering)]),
  };
}
