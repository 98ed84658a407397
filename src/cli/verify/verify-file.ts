/** What `braid verify` does, without printing: from a program file or a dump and flags to a report. */
import { writeFile } from "node:fs/promises";
import { link } from "../../commands/link/link.ts";
import type { Program } from "../../commands/program.ts";
import { DiagnosticError, fail } from "../../diagnostics/diagnostic.ts";
import { rankPrograms } from "../../compile/program-source.ts";
import type { Sizes } from "../../ir/sizes.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import { record } from "../../record/record.ts";
import { moveCopiesToLane } from "../../schedule/rewrites/copy-stream.ts";
import { applySchedule } from "../../schedule/schedule.ts";
import { verify, verifyLists, type VerifyReport } from "../../verify/verify.ts";
import { buildProgram } from "../program/build-program.ts";
import { inputSizes } from "../program/input-sizes.ts";
import { requireNotLowered } from "../program/load-dump.ts";
import type { ProgramFlags } from "../flags/program-flags.ts";
import type { Step } from "../terminal/progress.ts";
import { type RecordingFlags, scheduleOf } from "../flags/recording-flags.ts";
import { printedLines } from "../program/statement-lines.ts";
import { systemReason } from "../terminal/system-reason.ts";
import { reportPage } from "./report-page.ts";

export interface VerifyFlags extends ProgramFlags, RecordingFlags {
  /** Where to write the findings as a page. */
  readonly report?: string;
  /** Where to write the schedule of the first finding that has one. */
  readonly counterexample?: string;
}

export interface VerifyResult {
  readonly file: string;
  readonly flags: VerifyFlags;
  readonly params: Readonly<Record<string, number>>;
  readonly options: Partial<LoweringOptions>;
  readonly sizes: Sizes;
  readonly report: VerifyReport;
  /** Of record, link and verify. */
  readonly milliseconds: number;
  /** The files that were written. */
  readonly written: readonly string[];
}

export async function verifyFile(
  file: string,
  flags: VerifyFlags,
  options: Partial<LoweringOptions>,
  step: Step,
): Promise<VerifyResult> {
  step(`loading ${file}`);
  requireNotLowered(file, options);
  const { source, signature, params, lineOf: linesOfDump } = await buildProgram(file, flags);
  const sizes = inputSizes(signature, flags.size);
  step(`lowering for ${flags.devices} devices`);
  const { hosts } = rankPrograms(source, flags.devices, options);
  step("verifying");
  const start = performance.now();
  const { protocol = "get" } = options;
  const lists = hosts.map((host, rank) => record(host, { rank, sizes, streams: flags.streams, protocol }));
  const lineOf = linesOfDump ?? printedLines(hosts);
  const recorded = linked(lists);
  const program = recorded === null ? null : rewritten(recorded, flags);
  const report = program === null ? verifyLists(lists, { lineOf }) : verify(program, { lineOf });
  const milliseconds = performance.now() - start;
  const written: string[] = [];
  const result = { file, flags, params, options, sizes, report, milliseconds, written };
  if (flags.report !== undefined) {
    await write("--report", flags.report, reportPage({ title: file, program, report }));
    written.push(flags.report);
  }
  const schedule = report.findings.find(({ interleaving }) => interleaving !== null)?.interleaving ?? null;
  if (flags.counterexample !== undefined && schedule !== null) {
    await write("--counterexample", flags.counterexample, schedule);
    written.push(flags.counterexample);
  }
  return result;
}

/** Null where the lists do not link, which `verifyLists` tells as findings. */
function linked(lists: Parameters<typeof link>[0]): Program | null {
  try {
    return link(lists);
  } catch (error) {
    if (error instanceof DiagnosticError && error.diagnostics.every(({ code }) => code === "transfer-mismatch"))
      return null;
    throw error;
  }
}

/** As it would run; as it was recorded where that is wrong, since a rewrite orders what its list orders, with or without an event. */
function rewritten(program: Program, flags: RecordingFlags): Program {
  const scheduled = applySchedule(program, scheduleOf(flags));
  const isRight = scheduled === program || verify(program, { notes: false }).ok;
  const chosen = isRight ? scheduled : program;
  return flags.copyLane === "dedicated" ? moveCopiesToLane(chosen) : chosen;
}

async function write(flag: string, path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text);
  } catch (error) {
    fail({
      code: "file-unwritable",
      message: "a file cannot be written",
      place: { kind: "option", text: flag },
      found: `${path}: ${systemReason(error)}`,
      expected: "the path of a file that can be written",
      help: "choose another path",
    });
  }
}
