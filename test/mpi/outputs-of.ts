/** Runs a Program in one process, or split over groups in this process that stand for several. */
import { createFlightRecorder } from "../../src/backends/flight/flight-recorder.ts";
import { openMpiGroup } from "../../src/backends/mpi/mpi-backend.ts";
import type { Program } from "../../src/commands/program.ts";
import { createCpuBackend } from "../../src/cpu.ts";
import { sha256 } from "../../src/plan/plan-document.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { memoryTransports } from "./memory-transports.ts";

/** By buffer: a digest of its bytes. */
type Digests = ReadonlyMap<number, string>;

interface Runs {
  readonly runs?: number;
  /** A seed of random pauses of the workers. */
  readonly jitter?: number | null;
}

/** All outputs of each run, two by default, on random inputs. `processes`: 0 for the CPU back end. */
export async function outputsOf(
  program: Program,
  processes: number,
  { runs: count = 2, jitter = null }: Runs = {},
): Promise<readonly Digests[]> {
  const world = program.ranks.length;
  const processOf = program.ranks.map((_, rank) => Math.floor((rank * processes) / world));
  const groups =
    processes === 0
      ? [await createCpuBackend({ workers: 2 }).open({ world, localRanks: processOf.map((_, rank) => rank) })]
      : memoryTransports(processes).map((transport) =>
          openMpiGroup({
            transport,
            processOf,
            pool: { workers: 1, jitter },
            blas: null,
            flight: createFlightRecorder(),
          }),
        );
  const prepared = await Promise.all(groups.map((group) => group.prepare(program)));
  const holder = (rank: number): number => (processes === 0 ? 0 : at(processOf, rank));
  const random = createRandom(3);
  const inputs = program.buffers.filter(({ role }) => role === "input");
  const outputs = program.buffers.filter(({ role, output }) => role === "output" || output !== undefined);
  const runs: Digests[] = [];
  for (let run = 0; run < count; run++) {
    for (const { id, rank, bytes, dtype } of inputs) {
      // Small numbers in every dtype that the examples have. Those of int64 are positions of a cache of 16.
      const data =
        dtype === "int64"
          ? new BigInt64Array(bytes / 8).map(() => BigInt(Math.floor(8 * random.float())))
          : new Float32Array(bytes / 4).map(() => random.float() - 0.5);
      at(prepared, holder(rank)).write(id, new Uint8Array(data.buffer));
    }
    await Promise.all(prepared.map((each) => each.execute({ timeout: 20 })));
    runs.push(new Map(outputs.map(({ id, rank }) => [id, sha256(at(prepared, holder(rank)).read(id))])));
  }
  await Promise.all(groups.map((group) => group.close()));
  return runs;
}
