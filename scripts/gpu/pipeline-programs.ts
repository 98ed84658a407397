/** The programs of pipeline-rows.ts: all-gather + matmul as a pipeline over the devices, and one GEMM of the shape. */
import { link } from "../../src/commands/link/link.ts";
import type { Program } from "../../src/commands/program.ts";
import { lower } from "../../src/compile/lower.ts";
import { record } from "../../src/compile/record.ts";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { linear } from "../../src/ir/api/ops.ts";
import { sizesFromMeshes } from "../../src/ir/sizes.ts";
import type { LoweringOptions } from "../../src/passes/options.ts";
import { applySchedule } from "../../src/schedule/schedule.ts";

export interface PipelineShape {
  readonly m: number;
  readonly k: number;
  /** Columns of each GPU. */
  readonly n: number;
}

export const pipelineShapes: readonly PipelineShape[] = [
  { m: 32_768, k: 16_384, n: 8192 },
  { m: 8192, k: 8192, n: 8192 },
  { m: 16_384, k: 16_384, n: 2048 },
  { m: 2048, k: 8192, n: 8192 },
  { m: 16_384, k: 2048, n: 1024 },
];

export interface Variant {
  readonly name: string;
  readonly lowering: Partial<LoweringOptions>;
  readonly onCopyStream: boolean;
  readonly streams: number;
  readonly graph: "on" | "off";
}

const get = { backend: "cuda", protocol: "get" } as const;
const put = { backend: "cuda", protocol: "put" } as const;

export const variants: readonly Variant[] = [
  { name: "nccl", lowering: { backend: "nccl" }, onCopyStream: false, streams: 4, graph: "off" },
  { name: "nccl, graph", lowering: { backend: "nccl" }, onCopyStream: false, streams: 4, graph: "on" },
  { name: "get, copy stream, 2 streams", lowering: get, onCopyStream: true, streams: 2, graph: "off" },
  { name: "get, copy stream, 2 streams, graph", lowering: get, onCopyStream: true, streams: 2, graph: "on" },
  { name: "get, copy stream, 8 streams, graph", lowering: get, onCopyStream: true, streams: 8, graph: "on" },
  { name: "get, inline, 8 streams, graph", lowering: get, onCopyStream: false, streams: 8, graph: "on" },
  { name: "put, copy stream, 2 streams, graph", lowering: put, onCopyStream: true, streams: 2, graph: "on" },
];

/** On one GPU, without communication. */
export const oneGemm: Variant = { name: "one GEMM", lowering: {}, onCopyStream: false, streams: 1, graph: "off" };

export interface PipelineProgram {
  readonly fusion: Fusion;
  readonly program: Program;
}

export function pipelineProgram(
  { m, k, n }: PipelineShape,
  devices: number,
  { lowering, onCopyStream, streams }: Variant,
): PipelineProgram {
  const f = new Fusion();
  const a = f.input([devices, m / devices, k], "bfloat16");
  const w = f.input([n, k], "bfloat16");
  const c = linear(a, w);
  f.output(c);
  if (devices > 1) {
    for (const tensor of [a, w, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
    a.axis(0).parallelize("DIDx");
    c.axis(0).parallelize("Stream");
  }
  const { tensors } = f.data();
  const { protocol = "get" } = lowering;
  const lists = Array.from({ length: devices }, (_, each) =>
    record(lower(f, { ...lowering, rank: each }), {
      rank: each,
      sizes: sizesFromMeshes(tensors),
      streams,
      protocol,
    }),
  );
  const linked = link(lists);
  const program = applySchedule(linked, { copyStream: onCopyStream ? "dedicated" : "inline" });
  return { fusion: f, program };
}
