/** `braid verify --flight`: compares the flight records of all ranks of a run, and says which rank is missing where. */
import type { Command } from "commander";
import { fail, renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import { counted } from "../../support/wording.ts";
import { compareFlights, type FlightReport } from "../../trace/flight/compare-flights.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { readFlights } from "./read-flights.ts";
import type { VerifyFlags } from "./verify-file.ts";

/** Throws `option-value` and `file-unreadable`. */
export async function compareFlight(
  command: Command,
  file: string | undefined,
  folder: string,
  { json, verbose }: Pick<VerifyFlags, "json" | "verbose">,
  terminal: Terminal,
): Promise<ExitStatus> {
  if (file !== undefined) withFile(command.name(), file);
  const report = compareFlights(await readFlights(folder));
  const ok = report.findings.every(({ severity }) => severity !== "error");
  terminal.out(
    json ? `${JSON.stringify({ flight: folder, ok, ...report }, undefined, 2)}\n` : flightText(folder, report, verbose),
  );
  return ok ? exitStatus.ok : exitStatus.checkFailed;
}

function flightText(folder: string, { findings, ranks }: FlightReport, verbose: boolean): string {
  const reasons = new Map<string, number[]>();
  for (const { rank, reason } of ranks)
    if (reason !== null) reasons.set(reason, [...(reasons.get(reason) ?? []), rank]);
  return [
    ...findings.flatMap((finding) => [renderDiagnostic(finding), ""]),
    ...ranks.flatMap(({ text, streams }) => [
      text,
      ...streams.flatMap((stream) => [
        `  ${stream.text}`,
        ...(verbose ? stream.last.map((step) => `    ${step}`) : []),
      ]),
    ]),
    "",
    ...[...reasons].map(([reason, of]) => `rank${of.length === 1 ? "" : "s"} ${of.join(", ")}: ${reason}`),
    `${folder}: ${counted(ranks.length, "rank")}, ${findings.length === 0 ? "no rank waits for another" : counted(findings.length, "finding")}`,
    "",
  ].join("\n");
}

function withFile(name: string, file: string): never {
  return fail({
    code: "option-value",
    message: "--flight compares records instead of verifying a program",
    place: { kind: "option", text: "--flight" },
    found: `--flight with the file ${file}`,
    expected: `braid ${name} --flight FOLDER`,
    help: "leave the file out: the records have all that is compared",
  });
}
