/**
 * Loops over the devices under many seeded interleavings, which must not change a bit. A program is lowered and linked
 * once and runs many times, on the machine.
 */
import { type Fusion, link, lower, type Program, record } from "@braid-compiler/braid";
import { createCpuBackend, type CpuOptions } from "@braid-compiler/braid/cpu";
import { shardOf } from "../../src/executor/shard.ts";
import { shapeOf } from "../../src/ir/sizes.ts";
import { tensorBytes } from "../../src/numerics/tensor/host-tensor.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { type ScheduleOptions, schedules } from "./point-to-point-schedules.ts";

export interface LoopSetting extends ScheduleOptions {
  readonly devices: number;
  readonly streams?: number;
}

export function linked(fusion: Fusion, { devices, streams = 4, ...options }: LoopSetting): Program {
  const { protocol = "get" } = options;
  return link(
    Array.from({ length: devices }, (_, rank) =>
      record(lower(fusion, { ...options, rank }), { rank, streams, protocol }),
    ),
  );
}

/**
 * Two runs on random inputs, so that the second finds slots and temporaries as the first has left them: all shards of
 * all outputs.
 */
export async function bitsOf(fusion: Fusion, program: Program, cpu: CpuOptions): Promise<Buffer> {
  const { inputs, tensors } = fusion.data();
  const wholes = inputs.map((id) => {
    const tensor = at(tensors, id);
    return { tensor, shape: shapeOf(tensor, new Map()) };
  });
  const values = randomInputs(
    wholes.map(({ tensor: { dtype }, shape }) => ({ dtype, shape })),
    createRandom(7),
    "uniform",
  );
  const localRanks = program.ranks.map(({ rank }) => rank);
  const group = await createCpuBackend(cpu).open({ world: localRanks.length, localRanks });
  const prepared = await group.prepare(program);
  for (let run = 0; run < 2; run++) {
    for (const { id, role, rank, position } of program.buffers) {
      if (role !== "input" || position === null) continue;
      const { tensor, shape } = at(wholes, position);
      prepared.write(id, shardOf(tensor, shape, tensorBytes(at(values, position)), rank));
    }
    await prepared.execute();
  }
  const outputs = program.buffers
    .filter(({ role }) => role === "output")
    .toSorted((a, b) => (a.position ?? 0) - (b.position ?? 0) || a.rank - b.rank);
  const bits = Buffer.concat(outputs.map(({ id }) => prepared.read(id)));
  prepared.release();
  await group.close();
  return bits;
}

/**
 * The schedules and seeds under which a program on 4 devices and 3 streams gives other bits than round-robin; none if
 * it is correct. Every other seed uses eager transfers.
 */
export async function differingSeeds(build: (devices: number) => Fusion, seeds: number): Promise<readonly string[]> {
  const differing: string[] = [];
  const fusion = build(4);
  for (const [name, options] of Object.entries(schedules)) {
    const program = linked(fusion, { devices: 4, streams: 3, insertReshardingAfter: true, ...options });
    const expected = await bitsOf(fusion, program, { interleaving: { kind: "turns" } });
    for (let seed = 1; seed <= seeds; seed++) {
      const transfers = seed % 2 === 0 ? "eager" : "synchronous";
      const bits = await bitsOf(fusion, program, { interleaving: { kind: "seed", seed }, transfers });
      if (!bits.equals(expected)) differing.push(`${name}, seed ${seed}`);
    }
  }
  return differing;
}
