/** `braid explain`: predicts a program's time on a measured machine, and says what is exposed and why. */
import type { Command } from "commander";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import { profilerTraces } from "../../import/loader.ts";
import { compileGiven, fileArgument, givenOptions, programCommand } from "../flags/option-flags.ts";
import { ownProfile, profileToPredictWith } from "../flags/profile.ts";
import { whileBuilding } from "../program/apart/build-apart.ts";
import { givenDevices } from "../program/given-devices.ts";
import { requireNoOwnTrace } from "../program/own-trace.ts";
import { recordFilesIn } from "../program/record-files.ts";
import { writeExplainReport } from "../report/explained-report.ts";
import { requireOutput } from "../terminal/output-file.ts";
import { withProgress } from "../terminal/progress.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { ChunkChange, ExplainFlags, ExplainResult } from "./explain-file.ts";

export function explainCommand(terminal: Terminal, finish: (status: ExitStatus) => void): Command {
  const meaning = `${fileArgument}; or traces of PyTorch's profiler, one of each rank`;
  const command = programCommand("explain", "[files...]", meaning).description(
    "Predicts a program's time on a measured machine, without a GPU, and says what is exposed and why.",
  );
  return command.action(async (files: readonly string[], flags: ExplainFlags) => {
    const [file] = files;
    if (file === undefined) {
      return command.error("error: missing required argument 'file'", { code: "commander.missingArgument" });
    }
    requireNoOwnTrace(files);
    const traces = await recordFilesIn(files, { ...profilerTraces, what: "traces", verb: "explained" });
    if (traces !== null) {
      const { explainTraces } = await import("./explain-traces.ts");
      return finish(await explainTraces(traces, flags, terminal));
    }
    const given = compileGiven(command, file);
    if (flags.report !== undefined) await requireOutput("--report", flags.report);
    const { readTrace } = await import("./measured-trace.ts");
    const trace = flags.measured === undefined ? null : await readTrace(flags.measured);
    const devices = (await givenDevices(command, file, flags)) ?? trace?.run.devices ?? flags.devices;
    const said = givenOptions(command, ["on"]).on ?? trace?.run.on;
    const profile = flags.profile ?? (trace === null && said !== "cpu" ? await ownProfile(devices) : null);
    const named = profile === null ? flags : { ...flags, profile };
    const all = { ...named, devices, on: said ?? (await profileToPredictWith(named)).on };
    const explained = async (used: ExplainFlags, measured = trace): Promise<ExplainResult> =>
      withProgress(terminal, (step) =>
        whileBuilding(file, used, terminal.err, async (building) => {
          const { explainFile } = await import("./explain-file.ts");
          const { devicesPerHost } = used;
          const compiling = devicesPerHost === undefined ? given : { ...given, devicesPerHost };
          // A traced run does not replay a graph.
          return explainFile(file, used, compiling, { measured, graph: trace === null, building, step });
        }),
      );
    const result = await explained({ ...all, whatIf: new Map() });
    const other = flags.whatIf.size === 0 ? null : await explained(await elsewhere(all), null);
    const chunks = flags.all ? await chunkChanges(result, all, (used) => explained({ ...used, all: false }, null)) : [];
    const { explainDocument, explainText, notesText } = await import("./explain-text.ts");
    const document = (): object => ({
      ...explainDocument({ ...result, chunks }),
      whatIf: other === null ? undefined : { changes: Object.fromEntries(flags.whatIf), ...explainDocument(other) },
    });
    if (flags.report !== undefined) await writeExplainReport(flags.report, result);
    terminal.out(
      flags.json
        ? `${JSON.stringify(document(), undefined, 2)}\n`
        : explainText({ ...result, chunks }, other, terminal),
    );
    terminal.err(notesText(result));
    finish(exitStatus.ok);
  });
}

/** The flags with the numbers of devices and hosts that `--what-if` asks for. */
async function elsewhere(flags: ExplainFlags): Promise<ExplainFlags> {
  const { changedMachines } = await import("../../explain/what-if.ts");
  const { devicesPerHost, ...others } = flags;
  const machines = changedMachines({ devices: flags.devices, devicesPerHost }, flags.whatIf);
  return machines.devicesPerHost === undefined
    ? { ...others, devices: machines.devices }
    : { ...others, devices: machines.devices, devicesPerHost: machines.devicesPerHost };
}

// Predictions with more and fewer chunks, where a parameter of the program seems to be their number.

/** A parameter counts chunks if a loop of the program has as many. Each prediction builds the program again. */
async function chunkChanges(
  { params, explanation: { run } }: ExplainResult,
  flags: ExplainFlags,
  explained: (flags: ExplainFlags) => Promise<ExplainResult>,
): Promise<readonly ChunkChange[]> {
  const counts = new Set(run.regions.flatMap(({ isLoop, chunks }) => (isLoop ? [chunks] : [])));
  const changes = Object.entries(params).flatMap(([name, value]) =>
    typeof value === "number" && counts.has(value)
      ? [value / 2, 2 * value].flatMap((other) => (Number.isInteger(other) ? [{ name, value: other }] : []))
      : [],
  );
  const found: ChunkChange[] = [];
  for (const change of changes) {
    const set = new Map(flags.set).set(change.name, change.value);
    found.push({ ...change, ...(await timeOrRefusal(() => explained({ ...flags, set, whatIf: new Map() }))) });
  }
  return found;
}

async function timeOrRefusal(
  explained: () => Promise<ExplainResult>,
): Promise<Pick<ChunkChange, "milliseconds" | "refused">> {
  try {
    const { explanation } = await explained();
    return { milliseconds: explanation.run.milliseconds, refused: null };
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    return { milliseconds: null, refused: error.diagnostics[0]?.message ?? error.message };
  }
}
