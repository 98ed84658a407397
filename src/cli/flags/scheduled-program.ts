/** The Program that flags ask for, unverified: recorded, linked, under the schedule, its copies placed. */
import { link } from "../../commands/link/link.ts";
import type { Program } from "../../commands/program.ts";
import type { HostProgram } from "../../host/nodes.ts";
import type { Sizes } from "../../ir/sizes.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import { record } from "../../record/record.ts";
import { moveCopiesToLane } from "../../schedule/rewrites/copy-stream.ts";
import { applySchedule } from "../../schedule/schedule.ts";
import { type RecordingFlags, scheduleOf } from "./recording-flags.ts";

/** Throws what record and link throw. */
export function scheduledProgram(
  hosts: readonly HostProgram[],
  sizes: Sizes,
  { protocol = "get" }: Partial<LoweringOptions>,
  flags: RecordingFlags,
): Program {
  const options = { sizes, streams: flags.streams, protocol };
  const program = applySchedule(link(hosts.map((host, rank) => record(host, { ...options, rank }))), scheduleOf(flags));
  return flags.copyLane === "dedicated" ? moveCopiesToLane(program) : program;
}
