/** Pipelines over few devices for tests of schedule rewrites, and a Program's outputs after a run. */
import { type CommandKind } from "../../src/commands/command.ts";
import {
  add,
  DeviceMesh,
  Fusion,
  linear,
  lower,
  matmul,
  record,
  sum,
  type DType,
  type Program,
} from "@braid-compiler/braid";
import { type MachineGroupOptions, openMachineGroup } from "../../src/backends/cpu/machine-group.ts";
import { link } from "../../src/commands/link/link.ts";
import { parseInterleaving } from "../../src/machine/interleaving.ts";
import { dtypes } from "../../src/numerics/dtype.ts";
import { tensorBytes } from "../../src/numerics/tensor/host-tensor.ts";
import { randomTensor } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { ring } from "../support/peer-fusions.ts";

export const devices = 4;

/** [devices, 6, 8] sharded by its first axis, times [8, 5]: gathered chunk by chunk. */
export const allgatherMatmul = (dtype: DType = "float"): Fusion => ring(devices, [6, 8, 5], dtype);

/** Partial results of [24, 16] x [16, 5] by shares of K, sent chunk by chunk to the devices that add them. */
function matmulReduceScatter(dtype: DType = "float"): Fusion {
  const f = new Fusion();
  const a = f.input([devices, devices, 6, 4], dtype);
  const b = f.input([devices, 1, 4, 5], dtype);
  const partial = matmul(a, b);
  const c = sum(partial, [0]);
  f.output(c);
  for (const tensor of [a, b, partial, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  a.axis(0).parallelize("DIDx");
  a.axis(1).parallelize("Stream");
  b.axis(0).parallelize("DIDx");
  partial.axis(0).parallelize("Stream");
  partial.axis(1).parallelize("DIDx");
  c.axis(1).parallelize("DIDx");
  return f;
}

/** Partial results of [24, 16] x [16, 5] by shares of K, in four chunks of rows, each added by one collective. */
function matmulAllreduce(dtype: DType = "float"): Fusion {
  const f = new Fusion();
  const a = f.input([4, devices, 6, 4], dtype);
  const b = f.input([devices, 4, 5], dtype);
  const partial = matmul(a, b);
  const c = sum(partial, [1]);
  f.output(c);
  for (const tensor of [a, b, partial, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  for (const [tensor, axis] of [
    [a, 1],
    [b, 0],
    [partial, 1],
  ] as const)
    tensor.axis(axis).parallelize("DIDx");
  partial.axis(0).parallelize("Stream");
  c.axis(0).parallelize("Stream");
  return f;
}

/** [32, 8] gathered in four chunks of rows, two linears by shares of the columns between, scattered again and added. */
function gatherScatter(dtype: DType = "float"): Fusion {
  const f = new Fusion();
  const x = f.input([32, 8], dtype);
  const up = f.input([16, 8], dtype);
  const down = f.input([8, 16], dtype);
  const hidden = linear(x, up);
  f.output(add(x, linear(hidden, down)));
  for (const tensor of [x, up, down]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  x.outerSplit(0, 4);
  x.outerSplit(1, devices).parallelize("DIDx");
  up.outerSplit(0, devices).parallelize("DIDx");
  down.outerSplit(1, devices).parallelize("DIDx");
  hidden.outerSplit(0, 4).parallelize("Stream");
  return f;
}

export const pipelines = {
  "allgather + matmul": allgatherMatmul,
  "matmul + reduce-scatter": matmulReduceScatter,
  "matmul + all-reduce": matmulAllreduce,
  "gather + linears + scatter": gatherScatter,
} as const;
export type Pipeline = keyof typeof pipelines;

export interface Recording {
  readonly dtype?: DType;
  readonly protocol?: "get" | "put";
  readonly backend?: "cuda" | "nccl";
  readonly streams?: number;
  readonly shrink?: boolean;
}

export function recorded(pipeline: Pipeline, options: Recording = {}): Program {
  const { backend = "cuda", streams = devices, shrink = true } = options;
  const protocol = backend === "cuda" ? { protocol: options.protocol ?? "get" } : {};
  const fusion = pipelines[pipeline](options.dtype);
  const lowering = {
    backend,
    ...protocol,
    insertReshardingAfter: pipeline === "matmul + reduce-scatter",
    shrink,
  };
  return link(
    Array.from({ length: devices }, (_, rank) =>
      record(lower(fusion, { ...lowering, rank }), { rank, streams, ...protocol }),
    ),
  );
}

/** The bytes of all outputs after two runs of the machine with random inputs, as hexadecimal digits. */
export async function outputsOf(
  program: Program,
  schedule: string,
  { queues = "streams", transfers = "eager" }: Pick<MachineGroupOptions, "queues" | "transfers"> = {},
): Promise<string> {
  const prepared = await openMachineGroup({ interleaving: parseInterleaving(schedule), transfers, queues }).prepare(
    program,
  );
  const random = createRandom(1);
  for (const { id, role, bytes, dtype } of program.buffers) {
    if (role !== "input") continue;
    const shape = [bytes / dtypes[dtype].bytes];
    prepared.write(id, tensorBytes(randomTensor({ dtype, shape }, random, "uniform")));
  }
  for (let run = 0; run < 2; run++) await prepared.execute();
  const outputs = program.buffers.filter(({ role }) => role === "output");
  return outputs.map(({ id }) => Buffer.from(prepared.read(id)).toString("hex")).join(" ");
}

/** How many commands of a kind one rank has. */
export function countOf(program: Program, rank: number, kind: CommandKind): number {
  return at(program.ranks, rank).commands.filter((command) => command.kind === kind).length;
}
