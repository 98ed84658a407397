/** `braid run`: compiles a program, runs it on all its devices, and checks the result if requested. */
import type { Command } from "commander";
import { renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import type { FlightRecorder } from "../../backends/flight/flight-recorder.ts";
import type { World } from "../../launch/join-world.ts";
import { comparedOptions } from "../flags/compared-options.ts";
import { givenOptions, programCommand } from "../flags/option-flags.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import { compileNames } from "../flags/compile-names.ts";
import { whileBuilding } from "../program/apart/build-apart.ts";
import { givenDevices } from "../program/given-devices.ts";
import { isPlan } from "../plan/is-plan.ts";
import { withProgress } from "../terminal/progress.ts";
import type { RunFlags } from "./run-flags.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { whereToRun } from "../ranks/where-to-run.ts";

/** Milliseconds that ranks may differ by beyond the time of a run, for example because of compiling kernels. */
const rankSlack = 60_000;

/** `args`: all arguments of the command line, for processes that run it again. */
export function runCommand(
  terminal: Terminal,
  finish: (status: ExitStatus) => void,
  args: readonly string[] = [],
): Command {
  const command = programCommand("run").description("Runs a program on all its devices, with random inputs.");
  return command.action(async (file: string, flags: RunFlags) => {
    if (await isPlan(file)) {
      const { runPlanCommand } = await import("../plan/run-command.ts");
      return finish(await runPlanCommand(file, flags, command, { terminal, args, rankSlack }));
    }
    const given = await givenDevices(command, file, flags);
    const where = whereToRun(flags.on, given, flags.devices);
    const run = async (world: World | null, flight: FlightRecorder): Promise<ExitStatus> => {
      const [here, own] = [{ ...flags, devices: where.devices }, givenOptions(command, compileNames)];
      const result = await withProgress(terminal, (step) =>
        whileBuilding(file, here, terminal.err, async (made) => {
          // Warnings about the program are the same on all ranks.
          const building = made !== null && (world?.rank ?? 0) > 0 ? { ...made, print: () => {} } : made;
          const [{ chooseBackend }, { runFile }] = await Promise.all([import("./backend.ts"), import("./run-file.ts")]);
          const backend = await chooseBackend(here, world, { FILE: file, ...comparedOptions(here) }, flight);
          return runFile(file, here, own, { backend, world, building, step });
        }),
      );
      if (result === null) return exitStatus.ok;
      const { runDocument, runText } = await import("./run-text.ts");
      terminal.out(flags.json ? `${JSON.stringify(runDocument(result), undefined, 2)}\n` : runText(result, terminal));
      for (const note of result.notes) terminal.err(`${renderDiagnostic(note)}\n`);
      for (const failure of result.failures) terminal.err(`${renderDiagnostic(failure)}\n`);
      return result.failures.length === 0 ? exitStatus.ok : exitStatus.checkFailed;
    };
    const exchangeTimeout = Math.ceil(flags.timeout * 1000) + rankSlack;
    const { flightDir } = flags;
    const here = async (): Promise<ExitStatus> => {
      const { withFlight } = await import("../ranks/with-flight.ts");
      return withFlight(where, flightDir, (flight) => run(null, flight));
    };
    if (where.kind === "here") return finish(await here());
    const { runWhere } = await import("../ranks/run-in-processes.ts");
    finish(await runWhere(where, { here, asRank: run }, { args, exchangeTimeout, flightDir, terminal }));
  });
}
