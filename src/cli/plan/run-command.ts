/** `braid run` on a plan. */
import Table from "cli-table3";
import type { Command } from "commander";
import type { FlightRecorder } from "../../backends/flight/flight-recorder.ts";
import { flagOf, namesOf, type NamesOf, type OptionName, type Options } from "../../compile/options.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import type { World } from "../../launch/join-world.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import { whereToRun } from "../ranks/where-to-run.ts";
import { runTimeText } from "../run/run-text.ts";
import { withProgress } from "../terminal/progress.ts";
import { plainBorders, trimmedLines } from "../terminal/table-style.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { readPlanFolder } from "./plan-folder.ts";
import type { PlanRunResult } from "./run-plan.ts";

/** The options that a plan leaves open. */
const openOptions: readonly OptionName[] = [
  "devices",
  "on",
  "seed",
  "repeat",
  "graph",
  "timeout",
  "outputDir",
  "flightDir",
  "json",
];

export interface PlanCommand {
  readonly terminal: Terminal;
  /** All arguments of the command line, for processes that run it again. */
  readonly args: readonly string[];
  /** Milliseconds that ranks may differ by beyond the time of a run. */
  readonly rankSlack: number;
}

/** Throws `option-value` and `plan-mismatch` for options that contradict the plan. */
export async function runPlanCommand(
  file: string,
  flags: Options<NamesOf<"run">>,
  command: Command,
  { terminal, args, rankSlack }: PlanCommand,
): Promise<ExitStatus> {
  const given = (name: OptionName): boolean => command.getOptionValueSource(name) === "cli";
  const closed = namesOf("run").find((name) => given(name) && !openOptions.includes(name));
  if (closed !== undefined) alreadyCompiled(flagOf(closed));
  if (flags.on !== "cuda") notOnGpus(file);
  const plan = await readPlanFolder(file);
  const { world: devices } = plan.document;
  const asked = given("devices") ? flags.devices : null;
  const where = whereToRun("cuda", asked, devices);
  if (where.devices !== devices) otherWorld(file, where.devices, devices);
  const run = async (world: World | null, flight: FlightRecorder): Promise<ExitStatus> => {
    const result = await withProgress(terminal, async (step) => {
      const { runPlan } = await import("./run-plan.ts");
      return runPlan(file, plan, flags, { world, flight, step });
    });
    if (result === null) return exitStatus.ok;
    terminal.out(flags.json ? `${JSON.stringify(result, undefined, 2)}\n` : planRunText(result));
    return exitStatus.ok;
  };
  const { flightDir } = flags;
  const here = async (): Promise<ExitStatus> => {
    const { withFlight } = await import("../ranks/with-flight.ts");
    return withFlight(where, flightDir, (flight) => run(null, flight));
  };
  const { runWhere } = await import("../ranks/run-in-processes.ts");
  const exchangeTimeout = Math.ceil(flags.timeout * 1000) + rankSlack;
  return runWhere(where, { here, asRank: run }, { args, exchangeTimeout, flightDir, terminal });
}

function planRunText({ plan, devices, seed, milliseconds, outputs, written }: PlanRunResult): string {
  const table = new Table({ ...plainBorders, head: ["output", "dtype", "shape", "fingerprint"] });
  for (const { name, named, dtype, shape, fingerprint } of outputs)
    table.push([named === null ? name : `${name} ${named}`, dtype, `[${shape.join(", ")}]`, fingerprint]);
  return [
    `${plan}: ${devices} ${devices === 1 ? "device" : "devices"} (cuda), seed ${seed}, ${runTimeText(milliseconds)}`,
    ...trimmedLines(table.toString()),
    ...(written.length === 0 ? [] : [`outputs: ${written.join(", ")}`]),
    "",
  ].join("\n");
}

function alreadyCompiled(flag: string): never {
  return fail("option-value", "a plan is already compiled", {
    place: { kind: "option", text: flag },
    found: `${flag} for a plan`,
    expected: `one of ${openOptions.map(flagOf).join(", ")}`,
    help: `leave ${flag} out, or pass the program file that the plan was made of`,
  });
}

function notOnGpus(file: string): never {
  return fail("option-value", "a plan runs on GPUs only", {
    place: { kind: "option", text: "--on" },
    found: `${file} without --on cuda`,
    expected: "--on cuda",
    help: `run it with --on cuda, or run the program file on the CPU`,
  });
}

function otherWorld(file: string, found: number, expected: number): never {
  return fail("plan-mismatch", "a plan is for another number of devices", {
    place: { kind: "file", path: file },
    found: `${found} devices`,
    expected: `${expected}`,
    help: `run it on ${expected} devices, or make a plan for ${found}: braid compile FILE --devices ${found} -o FOLDER`,
  });
}
