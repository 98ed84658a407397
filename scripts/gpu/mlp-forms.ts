/** Sequence-parallel MLPs for form-times.ts: one loop from the gather to the residual, and two with the activation between them. */
import { compile, type CompileOptions } from "../../src/compile/compile.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { add, gelu, linear } from "../../src/ir/api/ops.ts";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import type { Problem } from "./form.ts";
import { noise, writeShards } from "./noise.ts";

export interface MlpShape {
  readonly rows: number;
  readonly hidden: number;
  readonly ffn: number;
}

/** `fused`: the activation runs per chunk. Otherwise the user's mesh keeps Stream away from it: a barrier. */
export function mlp({ rows, hidden, ffn }: MlpShape, devices: number, chunks: number, fused: boolean): Fusion {
  const f = new Fusion();
  const [x, w1, w2] = [
    f.input([rows, hidden], "bfloat16"),
    f.input([ffn, hidden], "bfloat16"),
    f.input([hidden, ffn], "bfloat16"),
  ];
  const up = linear(x, w1);
  const activated = gelu(up);
  const down = linear(activated, w2);
  f.output(add(x, down));
  const mesh = DeviceMesh.range(devices);
  for (const tensor of [x, w1, w2]) tensor.setDeviceMesh(mesh);
  x.outerSplit(0, chunks);
  x.outerSplit(1, devices).parallelize("DIDx");
  w1.outerSplit(0, devices).parallelize("DIDx");
  w2.outerSplit(1, devices).parallelize("DIDx");
  up.outerSplit(0, chunks).parallelize("Stream");
  if (!fused) {
    activated.setDeviceMesh(mesh).outerSplit(1, devices).parallelize("DIDx");
    down.outerSplit(0, chunks).parallelize("Stream");
  }
  return f;
}

type Options = Omit<CompileOptions, "devices">;

/** By name: how a form with this many chunks is compiled. Every chunk has a stream, and slots, of its own. */
export const schedules: Readonly<Record<string, (streams: number) => Options>> = {
  nccl: (streams) => ({ backend: "nccl", streams }),
  "nccl, early": (streams) => ({ backend: "nccl", streams, schedule: { earlyGathers: true } }),
  cuda: (streams) => ({ backend: "cuda", streams }),
  "cuda, early": (streams) => ({ backend: "cuda", streams, schedule: { earlyGathers: true } }),
  "cuda, early, 1 compute stream": (streams) => ({
    backend: "cuda",
    streams,
    schedule: { earlyGathers: true, computeStreams: 1 },
  }),
};

const shape: MlpShape = { rows: 8192, hidden: 8192, ffn: 28_672 };

export const loopProblems: readonly Problem[] = [
  {
    name: `MLP in loops, rows ${shape.rows}, hidden ${shape.hidden}, ffn ${shape.ffn}`,
    forms: (_, devices) => {
      let whole: ReturnType<typeof noise> | null = null;
      return [4, 8].flatMap((chunks) =>
        Object.entries(schedules).flatMap(([label, options]) =>
          [true, false].map((fused) => {
            const f = mlp(shape, devices, chunks, fused);
            const { program, signature } = compile(f, { ...options(chunks), devices, on: "cuda" });
            return {
              name: `${fused ? "one loop" : "two loops"}, ${chunks} chunks, ${label}`,
              program,
              predicted: null,
              write: (prepared, rank) =>
                writeShards(f, signature.tensors, program, prepared, rank, (whole ??= noise(f))),
            };
          }),
        ),
      );
    },
  },
];
