/** Programs whose ranks are alike, as command lists: every form of communication, on one mesh and on two dimensions. */
import { type CommandList, DeviceMesh, Fusion, type LowerOptions, matmul, set, sum } from "@braid-compiler/braid";
import { lowerRanks } from "../../../src/compile/lower.ts";
import { recordAll } from "../../../src/compile/record.ts";

export interface AlikeProgram {
  readonly name: string;
  readonly lists: readonly CommandList[];
  /** The number of classes; null if the ranks are not alike. */
  readonly classes: number | null;
}

function listsOf(fusion: Fusion, devices: number, options: Omit<LowerOptions, "rank">): readonly CommandList[] {
  const { protocol = "get" } = options;
  return recordAll(lowerRanks(fusion, devices, options).classes, { streams: 3, devices, protocol });
}

/** A ring: the chunks are the devices' shards. */
function ring(mesh: DeviceMesh): Fusion {
  const f = new Fusion();
  const a = f.input([mesh.size("DIDx"), 4, 8], "float");
  const b = f.input([8, 2], "float");
  const c = matmul(a, b);
  f.output(c);
  for (const tensor of [a, b, c]) tensor.setDeviceMesh(mesh);
  a.axis(0).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}

/** Collectives in chunks. */
function pipeline(mesh: DeviceMesh): Fusion {
  const f = new Fusion();
  const a = f.input([3, mesh.size("DIDx"), 4, 8], "float");
  const b = f.input([8, 2], "float");
  const c = matmul(a, b);
  f.output(c);
  for (const tensor of [a, b, c]) tensor.setDeviceMesh(mesh);
  a.axis(1).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}

/** Partial sums, in one collective. */
function allreduce(mesh: DeviceMesh): Fusion {
  const f = new Fusion();
  const a = f.input([mesh.size("DIDx"), 4, 8], "float");
  const b = sum(a, [0]);
  f.output(b);
  for (const tensor of [a, b]) tensor.setDeviceMesh(mesh);
  a.axis(0).parallelize("DIDx");
  return f;
}

/** From one half of the devices to the other. */
function twoStages(devices: number): Fusion {
  const f = new Fusion();
  const half = devices / 2;
  const a = f.input([half, 8], "float");
  const b = set(a);
  f.output(b);
  a.setDeviceMesh(DeviceMesh.range(half));
  b.setDeviceMesh(new DeviceMesh(Array.from({ length: half }, (_, i) => half + i)));
  for (const tensor of [a, b]) tensor.axis(0).parallelize("DIDx");
  return f;
}

/** `only`: those of this name. */
export function alikePrograms(devices: number, only?: string): readonly AlikeProgram[] {
  const range = DeviceMesh.range(devices);
  const half = devices / 2;
  const grid = new DeviceMesh([
    Array.from({ length: half }, (_, i) => i),
    Array.from({ length: half }, (_, i) => half + i),
  ]);
  /** Even ranks, then odd ones. */
  const shuffled = new DeviceMesh(
    Array.from({ length: devices }, (_, i) => (2 * i) % (devices - 1 || 1)).with(-1, devices - 1),
  );
  const get = { backend: "cuda" } as const;
  const put = { backend: "cuda", protocol: "put" } as const;
  const nccl = { backend: "nccl" } as const;
  const of = (
    name: string,
    fusion: Fusion,
    options: Omit<LowerOptions, "rank">,
    classes: number | null,
  ): readonly AlikeProgram[] => {
    if (only !== undefined && name !== only) return [];
    const text = `${name}, ${JSON.stringify(options)}, ${devices} ranks`;
    return [{ name: text, lists: listsOf(fusion, devices, options), classes }];
  };
  return [
    ...[get, put, nccl].flatMap((options) => of("ring", ring(range), options, 1)),
    ...[get, nccl].flatMap((options) => of("pipeline", pipeline(range), options, 1)),
    ...[get, nccl].flatMap((options) => of("allreduce", allreduce(range), options, 1)),
    ...[get, nccl].flatMap((options) => of("pipeline of rows", pipeline(grid), options, 1)),
    ...[get, nccl].flatMap((options) => of("stages", twoStages(devices), options, 2)),
    ...[get, put].flatMap((options) => of("ring in another order", ring(shuffled), options, 1)),
    ...[get, nccl].flatMap((options) => of("pipeline in another order", pipeline(shuffled), options, 1)),
    ...of("ring of some", ring(DeviceMesh.range(devices - 1)), get, null),
    ...of("broadcast", ring(range), { backend: "cuda", p2p: "broadcast" }, null),
  ];
}
