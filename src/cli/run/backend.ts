/** The back end for `--on`, `--interleaving` and `--blas`. */
import type { FlightRecorder } from "../../backends/flight/flight-recorder.ts";
import type { Backend } from "../../backends/backend.ts";
import { findBlas } from "../../backends/cpu/blas/blas-library.ts";
import { readRegularText } from "../../backends/regular-file.ts";
import { createMpiBackend, processesOf, ranksHeld } from "../../backends/mpi/mpi-backend.ts";
import type { Target } from "../../compile/compile.ts";
import type { Options } from "../../compile/options.ts";
import { createCpuBackend, parseInterleaving } from "../../cpu.ts";
import { createCudaBackend, soloRendezvous } from "../../cuda.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { withProgramCheck } from "../../launch/checked-backend.ts";
import type { World } from "../../launch/join-world.ts";
import { at } from "../../support/invariant.ts";
import { systemReason } from "../../support/wording.ts";

import type { MpiPlace } from "../ranks/run-over-mpi.ts";
import type { RunPlace } from "./run-file.ts";
import type { RunFlags } from "./run-flags.ts";

type BackendFlags = Options<"interleaving" | "blas" | "graph"> & { readonly on: Target };

/**
 * `world`: the world of a rank in a separate process. Throws `option-value`, `file-unreadable`, `interleaving-invalid`.
 */
export async function chooseBackend(
  { on, interleaving, blas, graph }: BackendFlags,
  world: World | null,
  options: Readonly<Record<string, string>>,
  flight: FlightRecorder,
): Promise<Backend> {
  if (interleaving === undefined) {
    if (on === "cpu") return createCpuBackend({ blas, flight });
    const backend = createCudaBackend({ rendezvous: world ?? soloRendezvous(), graph, flight });
    return world === null ? backend : withProgramCheck(backend, world, options);
  }
  if (on !== "cpu") cpuOnly(on);
  return createCpuBackend({ blas, flight, interleaving: parseInterleaving(await interleavingText(interleaving)) });
}

/** The ranks of this process among those that mpirun started. Throws `option-value`. */
export function mpiPlace(
  { devices, interleaving, blas }: Pick<RunFlags, "devices" | "interleaving" | "blas">,
  { world, messages, library, processesHere }: MpiPlace,
  options: Readonly<Record<string, string>>,
  flight: FlightRecorder,
): RunPlace {
  if (interleaving !== undefined) cpuOnly("mpi");
  const file = blas === "auto" ? (findBlas()?.file ?? null) : null;
  const backend = createMpiBackend({ messages, processesHere, blas: file, flight });
  const holders = processesOf(devices, world.worldSize);
  return {
    backend: withProgramCheck(backend, world, { ...options, MPI: library.version }),
    world,
    localRanks: ranksHeld(holders, world.rank),
    holderOf: (rank) => at(holders, rank),
  };
}

/** seed:S and hold:RANK:COMMAND are used as they are. Any other text names a file. */
async function interleavingText(order: string): Promise<string> {
  if (/^(seed|hold):/.test(order)) return order;
  try {
    return await readRegularText(order);
  } catch (error) {
    return fail("file-unreadable", "the interleaving cannot be read", {
      place: { kind: "option", text: "--interleaving" },
      found: `${order}: ${systemReason(error)}`,
      expected: "seed:S, hold:RANK:COMMAND, or a readable file of RANK:STREAM lines",
      help: "correct the path, or the form of the interleaving",
    });
  }
}

function cpuOnly(on: string): never {
  return fail("option-value", "an interleaving runs on the CPU only", {
    place: { kind: "option", text: "--interleaving" },
    found: `--on ${on}`,
    expected: "--on cpu",
    help: "remove --interleaving, or run on the CPU",
  });
}
