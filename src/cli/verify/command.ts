/** `braid verify`: proves a program free of races, deadlocks and misuse of memory, or prints the findings. */
import type { Command } from "commander";
import { type Diagnostic, renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import { flightRecords } from "../../import/loader.ts";
import { counted } from "../../support/wording.ts";
import { type ExitStatus, exitStatus, statusOf } from "../exit-status.ts";
import { compileGiven, fileArgument, programCommand } from "../flags/option-flags.ts";
import { isPlan } from "../plan/is-plan.ts";
import { whileBuilding } from "../program/apart/build-apart.ts";
import { givenDevices } from "../program/given-devices.ts";
import { recordFilesIn } from "../program/record-files.ts";
import { withProgress } from "../terminal/progress.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { type VerifyFlags, type VerifyResult } from "./verify-file.ts";

export function verifyCommand(terminal: Terminal, finish: (status: ExitStatus) => void): Command {
  const command = programCommand(
    "verify",
    "[files...]",
    `${fileArgument}; or flight records of PyTorch, one of each rank`,
  ).description("Proves a program free of races, deadlocks and misuse of memory, without running it.");
  return command.action(async (files: readonly string[], flags: VerifyFlags) => {
    const [file] = files;
    if (flags.flight !== undefined) {
      const { compareFlight } = await import("./compare-flight.ts");
      return finish(await compareFlight(command, file, flags.flight, flags, terminal));
    }
    if (file === undefined) {
      return command.error("error: missing required argument 'file'", { code: "commander.missingArgument" });
    }
    const records = await recordFilesIn(files, { ...flightRecords, what: "flight records", verb: "verified" });
    if (records !== null) {
      const { compareTorchFiles } = await import("./compare-torch-files.ts");
      return finish(await compareTorchFiles(records, flags, terminal));
    }
    if (await isPlan(file)) {
      const { verifyPlan } = await import("../plan/verify-plan.ts");
      return finish(await verifyPlan(file, command, flags.json, terminal));
    }
    const given = compileGiven(command, file);
    const all = { ...flags, devices: (await givenDevices(command, file, flags)) ?? flags.devices };
    const result = await withProgress(terminal, (step) =>
      whileBuilding(file, all, terminal.err, async (building) => {
        const { verifyFile } = await import("./verify-file.ts");
        return verifyFile(file, all, given, { building, step });
      }),
    );
    terminal.out(
      flags.json ? `${JSON.stringify(verifyDocument(result), undefined, 2)}\n` : verifyText(result, terminal),
    );
    for (const failure of result.unwritten) terminal.err(`${renderDiagnostic(failure)}\n`);
    finish(result.report.ok ? statusOfFiles(result) : exitStatus.checkFailed);
  });
}

function statusOfFiles({ unwritten }: VerifyResult): ExitStatus {
  return unwritten.length === 0 ? exitStatus.ok : statusOf(unwritten);
}

function verifyText(
  { file, flags, report, repair, choice, missingLayers, milliseconds, written, replay }: VerifyResult,
  { outColors }: Terminal,
): string {
  const { ok, findings, size } = report;
  const errors = findings.filter(({ severity }) => severity === "error");
  const others = (["warning", "note"] as const).flatMap((severity) => {
    const count = findings.filter((finding) => finding.severity === severity).length;
    return count === 0 ? [] : [` and ${counted(count, severity)}`];
  });
  const verdict = ok ? outColors.green("ok") : outColors.red(counted(errors.length, "finding"));
  const scale = `${counted(size.ranks, "device")}, ${counted(flags.streams, "stream")}, ${counted(size.commands, "command")} on ${counted(size.streams, "queue")}`;
  return [
    ...findings.flatMap((finding) => [colored(finding, outColors), ""]),
    ...mendedBy(repair),
    ...(choice === null ? [] : [`schedule: ${choice}`]),
    ...(missingLayers === 0
      ? []
      : [`layers: ${missingLayers} of the equal ones are as the others; --verify full proves each`]),
    `${file}: ${verdict}${others.join("")}; ${scale}; ${milliseconds.toFixed(2)} ms`,
    ...written.map((path) => `written: ${path}`),
    ...(replay === null ? [] : [`replay: ${replay}`]),
    "",
  ].join("\n");
}

function mendedBy(lines: readonly string[]): readonly string[] {
  if (lines.length === 0) return [];
  return [`with ${lines.length === 1 ? "this" : "these"} it verifies:`, ...lines.map((text) => `  ${text}`), ""];
}

function colored(diagnostic: Diagnostic, colors: Terminal["outColors"]): string {
  const [headline = "", ...rest] = renderDiagnostic(diagnostic).split("\n");
  const paint = { error: colors.red, warning: colors.yellow, note: colors.cyan }[diagnostic.severity ?? "error"];
  return [headline.replace(/^\w+\[[^\]]*\]/, (label) => colors.bold(paint(label))), ...rest].join("\n");
}

/** The JSON document of --json, described in docs/verifier.md. */
function verifyDocument({
  file,
  flags,
  params,
  options,
  sizes,
  report,
  added,
  choice,
  missingLayers,
  milliseconds,
  written,
  replay,
}: VerifyResult): object {
  return {
    file,
    devices: flags.devices,
    streams: flags.streams,
    params,
    options,
    scheduleChoice: choice ?? undefined,
    missingLayers: missingLayers === 0 ? undefined : missingLayers,
    sizes: Object.fromEntries(sizes),
    ok: report.ok,
    size: report.size,
    findings: report.findings,
    added,
    milliseconds,
    written,
    replay,
  };
}
