/** `braid verify` of flight records of PyTorch: which rank is missing where, and where ranks first differ. */
import { renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import { compareTorchRecords, type TorchReport } from "../../import/flight-records/compare-records.ts";
import { readTorchRecord, type TorchRecord } from "../../import/flight-records/torch-record.ts";
import { flightRecords } from "../../import/loader.ts";
import { counted } from "../../support/wording.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import { readRecord } from "../program/record-files.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { VerifyFlags } from "./verify-file.ts";

/** Throws `file-unreadable` and `record-invalid`. */
export async function compareTorchFiles(
  files: readonly string[],
  { json, verbose }: Pick<VerifyFlags, "json" | "verbose">,
  terminal: Terminal,
): Promise<ExitStatus> {
  const records: TorchRecord[] = [];
  for (const file of files) records.push(readTorchRecord(await readRecord(file, "flight record", flightRecords), file));
  const report = compareTorchRecords(records);
  const ok = report.findings.every(({ severity }) => severity !== "error");
  terminal.out(
    json
      ? `${JSON.stringify({ records: files.length, ok, ...report }, undefined, 2)}\n`
      : reportText(report, files.length, verbose),
  );
  return ok ? exitStatus.ok : exitStatus.checkFailed;
}

/** Of how many ranks the transfers are listed, unless all are asked for. */
const mostRanks = 16;

function reportText({ findings, groups, ranks }: TorchReport, records: number, verbose: boolean): string {
  const shown = verbose ? ranks : ranks.slice(0, mostRanks);
  const errors = findings.filter(({ severity }) => severity === "error").length;
  return [
    ...findings.flatMap((finding) => [renderDiagnostic(finding), ""]),
    ...groups.map(({ text }) => text),
    "",
    ...shown.flatMap(({ rank, transfers, waits }) => [
      `rank ${rank}: ${counted(transfers, "transfer")}, ${waits.length === 0 ? "all completed" : "unfinished:"}`,
      ...waits.map((each) => `  ${each}`),
    ]),
    ...(shown.length < ranks.length ? [`and ${ranks.length - shown.length} more ranks (--print all)`] : []),
    "",
    `${counted(records, "record")}: ${errors === 0 ? "no rank waits for another" : counted(errors, "finding")}`,
    "",
  ].join("\n");
}
