/** `braid run`: compiles a program, runs it on all its devices, and checks the result if requested. */
import type { Command } from "commander";
import type { FlightRecorder } from "../../backends/flight/flight-recorder.ts";
import { renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import type { World } from "../../launch/join-world.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import { comparedOptions } from "../flags/compared-options.ts";
import { compileGiven, programCommand } from "../flags/option-flags.ts";
import { withOwnProfile } from "../flags/profile.ts";
import { isPlan } from "../plan/is-plan.ts";
import { whileBuilding } from "../program/apart/build-apart.ts";
import { isDumpFile } from "../program/dump-file.ts";
import { givenDevices } from "../program/given-devices.ts";
import type { MpiPlace } from "../ranks/run-over-mpi.ts";
import { launchedProcesses, whereToRun } from "../ranks/where-to-run.ts";
import { withProgress } from "../terminal/progress.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { RunPlace } from "./run-file.ts";
import type { RunFlags } from "./run-flags.ts";

/** Seconds that a program may take to build, however short a run is to be. */
const leastToBuild = 60;
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
    const run = async (
      devices: number,
      world: World | null,
      make: (flags: RunFlags) => Promise<RunPlace>,
    ): Promise<ExitStatus> => {
      const hosts = hostsOfRun(file, flags, world);
      const own = { ...compileGiven(command, file), ...hosts };
      const here = await withOwnProfile({ ...flags, ...hosts, devices }, own);
      const isAsked = command.getOptionValueSource("timeout") === "cli";
      const timeout = isAsked ? here.timeout : Math.max(here.timeout, leastToBuild);
      const result = await withProgress(terminal, (step) =>
        whileBuilding(file, { ...here, timeout }, terminal.err, async (made) => {
          const [place, { runFile }] = await Promise.all([make(here), import("./run-file.ts")]);
          // Warnings about the program are the same on all ranks.
          const building = made !== null && (place.world?.rank ?? 0) > 0 ? { ...made, print: () => {} } : made;
          return runFile(file, here, own, { ...place, building, step });
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
    const { flightDir, on } = flags;
    const compared = (here: RunFlags): Readonly<Record<string, string>> => ({ FILE: file, ...comparedOptions(here) });
    if (on === "mpi") {
      const { runOverMpi } = await import("../ranks/run-over-mpi.ts");
      const overMpi = async (mpi: MpiPlace, flight: FlightRecorder): Promise<ExitStatus> => {
        const { mpiPlace } = await import("./backend.ts");
        return run(given ?? flags.devices, null, async (here) => mpiPlace(here, mpi, compared(here), flight));
      };
      return finish(await runOverMpi(exchangeTimeout, flightDir, overMpi));
    }
    const processes = launchedProcesses();
    if (on === "cpu" && processes > 1) {
      const { afterFirst, isFirstProcess } = await import("../ranks/where-to-run.ts");
      if (isFirstProcess()) (await import("../../backends/mpi/launcher-of.ts")).notOverMpi(processes);
      await afterFirst();
      return finish(exitStatus.badInput);
    }
    const where = whereToRun(on, given, flags.devices);
    const asRank = (world: World | null, flight: FlightRecorder): Promise<ExitStatus> =>
      run(where.devices, world, async (here) => {
        const { chooseBackend } = await import("./backend.ts");
        const backend = await chooseBackend({ ...here, on }, world, compared(here), flight);
        return { backend, world, localRanks: world === null ? null : [world.rank], holderOf: (rank) => rank };
      });
    const here = async (): Promise<ExitStatus> => {
      const { withFlight } = await import("../ranks/with-flight.ts");
      return withFlight(where, flightDir, (flight) => asRank(null, flight));
    };
    if (where.kind === "here") return finish(await here());
    const { runWhere } = await import("../ranks/run-in-processes.ts");
    finish(await runWhere(where, { here, asRank }, { args, exchangeTimeout, flightDir, terminal }));
  });
}

// `--devices-per-host` of a run whose ranks are on several hosts.

/** As the ranks are on the hosts, unless the command line says otherwise. Dumps are already lowered. */
function hostsOfRun(
  file: string,
  { devicesPerHost }: Pick<RunFlags, "devicesPerHost">,
  world: Pick<World, "worldSize" | "hostNames"> | null,
): { readonly devicesPerHost?: number } {
  if (world === null || world.hostNames.length < 2 || devicesPerHost !== undefined || isDumpFile(file)) return {};
  return { devicesPerHost: world.worldSize / world.hostNames.length };
}
