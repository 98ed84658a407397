/** Programs split over processes have the bits of one process. The processes are groups in this one. */
import { describe, expect, it } from "vitest";
import { createFlightRecorder } from "../../src/backends/flight/flight-recorder.ts";
import { openMpiGroup } from "../../src/backends/mpi/mpi-group.ts";
import { splitProgram } from "../../src/backends/mpi/split/split-program.ts";
import type { Program } from "../../src/commands/program.ts";
import { compile, type CompileOptions } from "../../src/compile/compile.ts";
import { createCpuBackend } from "../../src/cpu.ts";
import { sha256 } from "../../src/plan/sha256.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { exampleFusion } from "../support/example-program.ts";
import { memoryTransports } from "./memory-transports.ts";

/** By buffer: a digest of its bytes. */
type Digests = ReadonlyMap<number, string>;

/** Random bytes for each input, and all outputs of two runs. */
async function outputsOf(program: Program, processes: number): Promise<readonly Digests[]> {
  const world = program.ranks.length;
  const processOf = program.ranks.map((_, rank) => Math.floor((rank * processes) / world));
  const groups =
    processes === 0
      ? [await createCpuBackend({ workers: 2 }).open({ world, localRanks: processOf.map((_, rank) => rank) })]
      : memoryTransports(processes).map((transport) =>
          openMpiGroup({ transport, processOf, workers: 1, blas: null, flight: createFlightRecorder() }),
        );
  const prepared = await Promise.all(groups.map((group) => group.prepare(program)));
  const holder = (rank: number): number => (processes === 0 ? 0 : at(processOf, rank));
  const random = createRandom(3);
  const inputs = program.buffers.filter(({ role }) => role === "input");
  const outputs = program.buffers.filter(({ role }) => role === "output");
  const runs: Digests[] = [];
  for (let run = 0; run < 2; run++) {
    for (const { id, rank, bytes } of inputs) {
      // Small numbers in every dtype that the examples have.
      const data = new Float32Array(bytes / 4).map(() => random.float() - 0.5);
      at(prepared, holder(rank)).write(id, new Uint8Array(data.buffer));
    }
    await Promise.all(prepared.map((each) => each.execute({ timeout: 20 })));
    runs.push(new Map(outputs.map(({ id, rank }) => [id, sha256(at(prepared, holder(rank)).read(id))])));
  }
  await Promise.all(groups.map((group) => group.close()));
  return runs;
}

const cases: readonly (readonly [
  example: string,
  devices: number,
  processes: number,
  options: Partial<CompileOptions>,
])[] = [
  ["allgather-matmul", 4, 2, {}],
  ["matmul-reduce-scatter", 4, 4, {}],
  ["matmul-allreduce", 4, 2, {}],
  ["ring-allgather-matmul", 4, 2, {}],
  ["ring-allgather-matmul", 4, 4, { backend: "cuda" }],
  ["ring-allgather-matmul", 4, 2, { backend: "cuda", protocol: "put" }],
  ["matmul-allreduce", 4, 2, { backend: "cuda" }],
  ["mlp", 3, 3, {}],
];

describe("a program split over processes", () => {
  it.each(cases)("examples/%s.ts, %d ranks on %d processes, %o", async (example, devices, processes, options) => {
    const fusion = await exampleFusion(`${example}.ts`, devices, {});
    const { program } = compile(fusion, { devices, ...options });
    expect(await outputsOf(program, processes)).toEqual(await outputsOf(program, 0));
  });

  it("does not change what stays in one process", async () => {
    const { program } = compile(await exampleFusion("mlp.ts", 2, {}), { devices: 2 });
    const split = splitProgram(program, [0, 0]);
    expect(split.channels).toEqual([]);
    expect(split.programOf(0).ranks).toEqual(program.ranks);
  });
});
