/** From host programs to what a back end is given: recorded, linked, rewritten by a schedule, its copies placed, and verified. */
import { link } from "../commands/link/link.ts";
import type { Program } from "../commands/program.ts";
import type { DiagnosticCode } from "../diagnostics/codes.ts";
import { DiagnosticError } from "../diagnostics/diagnostic.ts";
import type { HostProgram } from "../host/nodes.ts";
import type { Sizes } from "../ir/sizes.ts";
import type { RecordOptions } from "../record/options.ts";
import { record } from "../record/record.ts";
import { type CopyLane, moveCopiesToLane } from "../schedule/rewrites/copy-stream.ts";
import { applySchedule, type ScheduleOptions } from "../schedule/schedule.ts";
import { verify } from "../verify/verify.ts";

export const verifyUses = ["on", "off"] as const;
/** off: Programs run unproven, also those of which the verifier would say what is wrong. */
export type VerifyUse = (typeof verifyUses)[number];

export interface LinkOptions {
  readonly streams: number;
  readonly protocol: NonNullable<RecordOptions["protocol"]>;
  readonly copyLane: CopyLane;
  readonly schedule: ScheduleOptions;
  readonly verify: VerifyUse;
}

/** What a run may still give. */
const givenByRuns: readonly DiagnosticCode[] = ["size-missing", "scalar-missing"];

/** The Program of sizes that are known without inputs; null if a run has to give some. Throws as `linkPrograms`. */
export function linkIfConstant(hosts: readonly HostProgram[], sizes: Sizes, options: LinkOptions): Program | null {
  try {
    return linkPrograms(hosts, sizes, new Map(), options);
  } catch (error) {
    if (error instanceof DiagnosticError && error.diagnostics.every(({ code }) => givenByRuns.includes(code))) {
      return null;
    }
    throw error;
  }
}

/** Throws what record and link throw, and the verifier's findings. */
export function linkPrograms(
  hosts: readonly HostProgram[],
  sizes: Sizes,
  scalars: ReadonlyMap<string, number>,
  { copyLane, schedule, verify: use, ...options }: LinkOptions,
): Program {
  const lists = hosts.map((host, rank) => record(host, { ...options, rank, sizes, scalars }));
  const linked = link(lists);
  const scheduled = applySchedule(linked, schedule);
  // A rewrite makes events for all that its list orders, and so would hide that the recorded list lacks one.
  if (use === "on" && scheduled !== linked) requireVerified(linked);
  const program = copyLane === "dedicated" ? moveCopiesToLane(scheduled) : scheduled;
  if (use === "on") requireVerified(program);
  return program;
}

function requireVerified(program: Program): void {
  const { ok, findings, repair } = verify(program, { notes: false });
  if (ok) return;
  const errors = findings.filter(({ severity }) => severity === "error");
  const [first, ...rest] = errors;
  if (first === undefined) return;
  const repaired = repair?.map(({ text }) => `repair, verified: ${text}`) ?? [];
  throw new DiagnosticError([
    { ...first, notes: [...(first.notes ?? []), ...repaired, 'to run it unproven: verify: "off", or --verify off'] },
    ...rest,
  ]);
}
