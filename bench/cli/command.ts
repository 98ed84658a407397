/** `braid bench`: times tensor-parallel primitives in Braid's forms and schedules and in PyTorch's implementations. */
import { Argument, Command } from "commander";
import pc from "picocolors";
import type { FlightRecorder } from "../../src/backends/flight/flight-recorder.ts";
import { type MeasuredMachine, machineOf } from "../../src/backends/measured-machine.ts";
import { type ExitStatus, exitStatus } from "../../src/cli/exit-status.ts";
import { measuredTarget } from "../../src/cli/calibrate/command.ts";
import { addFlags, givenOptions, readValue } from "../../src/cli/flags/option-flags.ts";
import { ownProfile, profileToPredictWith } from "../../src/cli/flags/profile.ts";
import { placesOnCpu, placesOnGpus } from "../../src/cli/ranks/places.ts";
import { runWhere } from "../../src/cli/ranks/run-in-processes.ts";
import { processEnvironment, requireSeveralDevices, whereToRun } from "../../src/cli/ranks/where-to-run.ts";
import { requireOutput, writeOutput } from "../../src/cli/terminal/output-file.ts";
import type { Terminal } from "../../src/cli/terminal/terminal.ts";
import { oneOf } from "../../src/compile/options/kinds.ts";
import { exchangeAlone, exchangeWith } from "../../src/launch/exchange.ts";
import type { World } from "../../src/launch/join-world.ts";
import { readBenchConfig } from "../compare/bench-config.ts";
import { type BenchFlags, benchRows } from "../compare/bench-options.ts";
import { type BenchPlan, type BenchSettings, planBench } from "../compare/bench-plan.ts";
import { type BenchPrimitive, benchPrimitives } from "../compare/bench-problem.ts";
import type { BenchRow } from "../compare/bench-row.ts";
import { csvText } from "../compare/csv.ts";
import { labelOf } from "../compare/implementation-label.ts";
import { plotHtml, plotSvg } from "../compare/plot.ts";
import { type BenchHost, type PeerStart, requirePeers, runBench } from "../compare/run-bench.ts";
import { startTorch } from "../compare/torch/start-torch.ts";
import { resultsText } from "./results-table.ts";

/** Milliseconds that ranks may differ by, because of compiling kernels, filling gigabytes and PyTorch's start. */
const rankSlack = 240_000;
const primitiveKind = oneOf(benchPrimitives);

/** `args`: all arguments of the command line, for processes that run it again. */
export function benchCommand(
  terminal: Terminal,
  finish: (status: ExitStatus) => void,
  args: readonly string[] = [],
): Command {
  const command = addFlags(new Command("bench"), "bench", benchRows)
    .description(
      "Times a tensor-parallel primitive or a transformer block: Braid's schedules, the serial form, the compute alone, PyTorch and XLA.",
    )
    .addArgument(new Argument("[primitive]", benchPrimitives.join(", ")).argParser(primitiveOf));
  return command.action(async (primitive: BenchPrimitive | undefined, flags: BenchFlags) => {
    const settings = await benchSettings(command, flags);
    const where = whereToRun(settings.on, settings.devices ?? null, flags.devices);
    requireSeveralDevices(where.devices);
    const named = flags.profile ?? (settings.on === "cuda" ? await ownProfile(where.devices) : null);
    const profile = named === null ? null : await profileToPredictWith({ profile: named });
    const plan = planBench(primitive ?? null, { ...settings, profile }, where.devices);
    requirePeers(plan.implementations, plan.on);
    if (plan.csv !== null) await requireOutput("--out", plan.csv);
    if (plan.plot !== null) await requireOutput("--out", plan.plot);
    const exchangeTimeout = 1000 * plan.timeout + rankSlack;
    const work = {
      here: () => benchHere(plan, flags, terminal),
      asRank: (world: World, flight: FlightRecorder) => benchAsRank(plan, flags, { world, flight }, terminal),
    };
    finish(await runWhere(where, work, { args, exchangeTimeout, terminal }));
  });
}

/** Also accepts DDLB's names, with _ for -. */
function primitiveOf(text: string): BenchPrimitive {
  const read = (given: string): BenchPrimitive | undefined => primitiveKind.read(given.replaceAll("_", "-"));
  return readValue("PRIMITIVE", { ...primitiveKind, read }, text);
}

/** All ranks in this process. */
async function benchHere(plan: BenchPlan, flags: BenchFlags, terminal: Terminal): Promise<ExitStatus> {
  const places = placesOnCpu(plan.devices, plan.timeout);
  const machine = machineOf("cpu", 0);
  try {
    const rows = await runBench(plan, {
      places,
      exchange: exchangeAlone,
      peer: async () => ({ kind: "failed", why: "it runs on GPUs only" }),
      ...reporting(plan, machine, terminal),
    });
    return report(rows, machine, flags, terminal);
  } finally {
    await places.close();
  }
}

/** This process is one of the ranks; rank 0 reports. */
async function benchAsRank(
  plan: BenchPlan,
  flags: BenchFlags,
  { world, flight }: { readonly world: World; readonly flight: FlightRecorder },
  terminal: Terminal,
): Promise<ExitStatus> {
  const exchange = exchangeWith(world);
  const places = placesOnGpus(world, plan.timeout, chosen(plan), flight);
  const machine = machineOf("cuda", world.localRank);
  // PyTorch gets what the user set, without what Braid's driver sets for itself.
  const environment = { ...processEnvironment };
  const torch = once(() => startTorch(world, exchange, plan.python, 1000 * plan.timeout, environment));
  const quiet: Pick<BenchHost, "say" | "onRows"> = { say: () => {}, onRows: async () => {} };
  try {
    const reports = world.rank === 0 ? reporting(plan, machine, terminal) : quiet;
    const rows = await runBench(plan, { places, exchange, peer: torch.get, ...reports });
    await places.close();
    return world.rank === 0 ? report(rows, machine, flags, terminal) : exitStatus.ok;
  } finally {
    const started = await torch.made();
    if (started?.kind === "done") await started.value.close();
  }
}

/** Calls `make` at the first request only. */
function once(make: () => Promise<PeerStart>): {
  readonly get: () => Promise<PeerStart>;
  readonly made: () => Promise<PeerStart | null>;
} {
  let started: Promise<PeerStart> | null = null;
  return { get: () => (started ??= make()), made: async () => started };
}

function reporting(plan: BenchPlan, machine: MeasuredMachine, terminal: Terminal): Pick<BenchHost, "say" | "onRows"> {
  return {
    say: (line) => terminal.err(`${line}\n`),
    onRows: async (rows) => {
      if (plan.csv !== null) await writeOutput("--out", plan.csv, csvText(rows, machine));
      if (plan.plot !== null) await writeOutput("--out", plan.plot, plotText(plan.plot, rows, machine));
    },
  };
}

/** The file's extension selects the format. */
function plotText(file: string, rows: readonly BenchRow[], machine: MeasuredMachine): string {
  return file.endsWith(".html") ? plotHtml(rows, machine, resultsText(rows, noColors)) : plotSvg(rows, machine);
}

const noColors = pc.createColors(false);

function report(
  rows: readonly BenchRow[],
  machine: MeasuredMachine,
  { json }: BenchFlags,
  terminal: Terminal,
): ExitStatus {
  terminal.out(json ? `${JSON.stringify({ machine, rows }, undefined, 2)}\n` : resultsText(rows, terminal.outColors));
  const wrong = rows.filter(({ partOfBound }) => partOfBound !== null && !(partOfBound <= 1));
  for (const row of wrong) terminal.err(`${labelOf(row)}: a result differs by ${row.partOfBound} times its bound\n`);
  return wrong.length === 0 ? exitStatus.ok : exitStatus.checkFailed;
}

/** The settings that all ranks must have in common, by their names on the command line. */
function chosen(plan: BenchPlan): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(plan).map(([name, value]) => [name, JSON.stringify(value)]));
}

/**
 * Flags override the configuration file. Sizes given as flags replace all sizes of the file. Throws what
 * `readBenchConfig` throws.
 */
async function benchSettings(command: Command, flags: BenchFlags): Promise<Omit<BenchSettings, "profile">> {
  const { config: file, devices: _, profile: _named, out, ...given } = flags;
  const config = file === undefined ? {} : await readBenchConfig(file);
  const { m: _m, n: _n, k: _k, sizes: _s, ...unsized } = config;
  const isSized = [given.m, given.n, given.k, given.sizes].some((each) => each !== undefined);
  const on = measuredTarget(flags.on);
  const { csv, plot } = out ?? { csv: null, plot: null };
  const files = { ...(csv === null ? {} : { csv }), ...(plot === null ? {} : { plot }) };
  return { ...(isSized ? unsized : config), ...given, ...files, ...givenOptions(command, ["devices"]), on };
}
