/**
 * Records, links and runs host programs of all ranks on the CPU back end, under several interleavings and with
 * synchronous and eager transfers, and returns every rank's outputs. All runs must give the same bits.
 */
import { expect } from "vitest";
import { createCpuBackend, type CpuOptions } from "../../src/backends/cpu/cpu-backend.ts";
import { link } from "../../src/commands/link/link.ts";
import type { Program } from "../../src/commands/program.ts";
import type { HostProgram } from "../../src/host/nodes.ts";
import { emptyTensor, tensorBytes, type Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import type { RecordOptions } from "../../src/compile/record.ts";
import { record } from "../../src/compile/record.ts";

export interface RunSetting extends Omit<RecordOptions, "rank"> {
  /** inputs[rank][i]: the local part of input i. */
  readonly inputs: readonly (readonly Tensor[])[];
}

const settings: readonly CpuOptions[] = [
  { interleaving: { kind: "turns" } },
  { queues: "ranks" },
  ...[1, 2, 3, 4].map((seed): CpuOptions => ({ interleaving: { kind: "seed", seed }, transfers: "eager" })),
  ...[5, 6].map((seed): CpuOptions => ({ interleaving: { kind: "seed", seed }, transfers: "synchronous" })),
];

/** outputs[rank][i]: the local part of output i. */
export async function runPrograms(
  programs: readonly HostProgram[],
  { inputs, ...options }: RunSetting,
): Promise<Tensor[][]> {
  const linked = link(programs.map((program, rank) => record(program, { ...options, rank })));
  const results: Tensor[][][] = [];
  for (const setting of settings) results.push(await runOnce(linked, inputs, setting));
  const [first, ...others] = results;
  for (const other of others) expect(other).toEqual(first);
  return first ?? [];
}

async function runOnce(program: Program, inputs: RunSetting["inputs"], setting: CpuOptions): Promise<Tensor[][]> {
  const world = program.ranks.length;
  const group = await createCpuBackend(setting).open({ world, localRanks: program.ranks.map(({ rank }) => rank) });
  const prepared = await group.prepare(program);
  // The second run finds temporaries and slots as the first left them.
  for (let run = 0; run < 2; run++) {
    for (const { id, role, rank, position } of program.buffers) {
      const tensor = role === "input" && position !== null ? inputs[rank]?.[position] : undefined;
      if (tensor !== undefined) prepared.write(id, tensorBytes(tensor));
    }
    await prepared.execute();
  }
  const outputs: Tensor[][] = program.ranks.map(() => []);
  for (const { id, role, rank, position, dtype, shape } of program.buffers) {
    if (role !== "output" || position === null) continue;
    const tensor = emptyTensor(dtype, shape);
    tensorBytes(tensor).set(prepared.read(id));
    const own = outputs[rank];
    if (own !== undefined) own[position] = tensor;
  }
  prepared.release();
  await group.close();
  return outputs;
}

export function floats(shape: readonly number[], data: readonly number[]): Tensor {
  return { dtype: "float", shape, data: Float32Array.from(data) };
}

/** The elements 0, 1, 2, ... in row-major order, each through `value`. */
export function counted(shape: readonly number[], value: (i: number) => number = (i) => i): Tensor {
  const count = shape.reduce((product, extent) => product * extent, 1);
  return floats(
    shape,
    Array.from({ length: count }, (_, i) => value(i)),
  );
}

/** One host program per rank, each built for it. */
export function onRanks(world: number, build: (rank: number) => HostProgram): HostProgram[] {
  return Array.from({ length: world }, (_, rank) => build(rank));
}
