/**
 * `braid calibrate`: measures the times of a machine's kernels, copies and collectives, and writes them as a machine
 * profile.
 */
import { Command } from "commander";
import type { FlightRecorder } from "../../backends/flight/flight-recorder.ts";
import { machineOf } from "../../backends/measured-machine.ts";
import type { Target } from "../../compile/compile.ts";
import { hostCount } from "../../compile/host-count.ts";
import type { NamesOf, Options, OptionValue } from "../../compile/options.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { type Exchange, exchangeAlone, exchangeWith } from "../../launch/exchange.ts";
import type { World } from "../../launch/join-world.ts";
import type { DType } from "../../numerics/dtype.ts";
import { createMatrices, type Matrices } from "../../numerics/tensor/random-matrices.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { type CalibrationHost, calibrationSizes } from "../../tune/calibrate/calibration-host.ts";
import { measureProfile } from "../../tune/calibrate/measure-profile.ts";
import type { ProbeHosts } from "../../tune/calibrate/probe.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import { addFlags, givenOptions } from "../flags/option-flags.ts";
import { type ContenderPlaces, placesOnCpu, placesOnGpus } from "../ranks/places.ts";
import { runWhere } from "../ranks/run-in-processes.ts";
import { requireSeveralDevices, whereToRun } from "../ranks/where-to-run.ts";
import { requireOutput, writeOutput } from "../terminal/output-file.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { getOrMake } from "../../support/invariant.ts";

type CalibrateFlags = Omit<Options<NamesOf<"calibrate">>, "on"> & { readonly on: Target };

/** Seconds for one run. */
const timeout = 60;
/** Milliseconds that ranks may wait for each other. */
const exchangeTimeout = 180_000;

/** `args`: all arguments of the command line, for processes that run it again. */
export function calibrateCommand(
  terminal: Terminal,
  finish: (status: ExitStatus) => void,
  args: readonly string[] = [],
): Command {
  const command = addFlags(new Command("calibrate"), "calibrate").description(
    "Measures this machine for --schedule auto, and writes its profile.",
  );
  return command.action(async (given: Options<NamesOf<"calibrate">>) => {
    const flags = { ...given, on: measuredTarget(given.on) };
    const where = whereToRun(flags.on, givenOptions(command, ["devices"]).devices ?? null, flags.devices);
    const alone = hostsOf(where.devices, flags.devicesPerHost);
    await requireOutput("--out", flags.out);
    const work = {
      here: () => {
        const places = placesOnCpu(where.devices, timeout);
        return calibrate(flags, hostOf(alone, places, exchangeAlone, terminal), places, terminal);
      },
      asRank: (world: World, flight: FlightRecorder) => calibrateAsRank(flags, world, flight, terminal),
    };
    finish(await runWhere(where, work, { args, exchangeTimeout, terminal }));
  });
}

/** This process is one of the ranks; rank 0 writes. */
async function calibrateAsRank(
  flags: CalibrateFlags,
  world: World,
  flight: FlightRecorder,
  terminal: Terminal,
): Promise<ExitStatus> {
  const places = placesOnGpus(world, timeout, { command: "calibrate" }, flight);
  const launched = world.hostNames.length > 1 ? world.worldSize / world.hostNames.length : undefined;
  const hosts = hostsOf(world.worldSize, flags.devicesPerHost ?? launched);
  const host = hostOf(hosts, places, exchangeWith(world), terminal);
  return world.rank === 0
    ? calibrate(flags, host, places, terminal)
    : calibrate({ ...flags, out: null }, { ...host, say: () => {} }, places, terminal);
}

async function calibrate(
  { on, out }: Pick<CalibrateFlags, "on"> & { readonly out: string | null },
  host: CalibrationHost,
  places: ContenderPlaces,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { device, scales } = machineOf(on, 0);
  const sizes = calibrationSizes[on];
  const date = new Date().toISOString().slice(0, 10);
  const hosts = host.hosts === 1 ? "" : `${host.hosts} hosts of `;
  const machine = `${hosts}${host.devices} x ${device}, Node ${process.versions.node}, ${date}`;
  try {
    const profile = await measureProfile(host, { machine, on }, scales === true ? sizes : { ...sizes, scaled: [] });
    if (out === null) return exitStatus.ok;
    await writeOutput("--out", out, `${JSON.stringify(rounded(profile), undefined, 1)}\n`);
    terminal.out(`${out}: ${machine}\n`);
    return exitStatus.ok;
  } finally {
    await places.close();
  }
}

/** Throws `device-count` unless each host has several devices, and `bad-option`. */
function hostsOf(all: number, devicesPerHost: number | undefined): ProbeHosts {
  const hosts = hostCount(all, devicesPerHost);
  requireSeveralDevices(all / hosts);
  return { devices: all / hosts, hosts };
}

function hostOf(hosts: ProbeHosts, places: ContenderPlaces, exchange: Exchange, terminal: Terminal): CalibrationHost {
  const made = new Map<DType, Matrices>();
  const matricesOf = (dtype: DType): Matrices => {
    return getOrMake(made, dtype, () => createMatrices(dtype, 0));
  };
  return {
    ...hosts,
    placeFor: (graph) => places.placeFor(graph),
    gather: async (own) => {
      const outcome = await exchange({ kind: "done", value: own });
      return outcome.kind === "done" ? outcome.value : rankFailed(outcome.why);
    },
    fill: (dtype, name, bytes) => {
      const matrices = matricesOf(dtype);
      matrices.fill(name, 0, bytes.length / matrices.width, bytes, 0);
    },
    say: (line) => terminal.err(`measuring ${line}\n`),
  };
}

function rankFailed(why: string): never {
  return fail("rank-failed", "a rank could not run the probes", {
    place: { kind: "option", text: "braid calibrate" },
    found: why,
    expected: "every rank to run the probes",
    help: "braid doctor says what is missing",
  });
}

/** Repeated measurements agree in fewer than four digits. */
function rounded(profile: MachineProfile): unknown {
  const text = JSON.stringify(profile, (_, value: unknown) =>
    typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value,
  );
  const value: unknown = JSON.parse(text);
  return value;
}

// `--on` of the commands that measure a machine.

/** Throws `option-value` for MPI, which runs programs. */
export function measuredTarget(on: OptionValue<"on">): Target {
  if (on !== "mpi") return on;
  return fail("option-value", "what is measured runs on one host", {
    place: { kind: "option", text: "--on" },
    found: "--on mpi",
    expected: "--on cpu, or --on cuda",
    help: "run programs over MPI with braid run --on mpi",
  });
}
