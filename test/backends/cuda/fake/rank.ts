/** One rank of a test on fake GPUs: runs small programs in every idiom and prints a line for each. */
import process from "node:process";
import { createCudaBackend } from "../../../../src/cuda.ts";
import { DeviceMesh } from "../../../../src/ir/device-mesh.ts";
import { Fusion } from "../../../../src/ir/api/fusion.ts";
import { add, scaledLinear, scatterAdd, set, sum } from "../../../../src/ir/api/ops.ts";
import { enterWorld } from "../../../../src/launch/enter-world.ts";
import { rankEnvironment } from "../../../../src/launch/rank-environment.ts";
import type { LoweringOptions } from "../../../../src/passes/options.ts";
import type { ScheduleOptions } from "../../../../src/schedule/schedule.ts";
import { checkCase } from "../../../gpu/check-case.ts";
import { expectationsOf } from "../../../gpu/expectation.ts";
import { ring } from "../../../support/peer-fusions.ts";
import { layoutFusion } from "../../../support/layout-fusions.ts";

const who = rankEnvironment(process.env);
if (who === null) throw new Error("no rank in the environment");
const world = await enterWorld(who, process.env, 20_000);
const devices = world.worldSize;

/**
 * All-gather and matmul by chunks, also of 8-bit floats with scales of blocks, a sum over devices by kernels of several
 * blocks, and a change of the sharded axis.
 */
const programs: Readonly<Record<string, () => Fusion>> = {
  ring: () => ring(devices, [3, 4, 5], "half"),
  blocks: () => {
    const f = new Fusion();
    const [x, w] = [f.input([devices, 6, 256], "float8_e4m3fn"), f.input([144, 256], "float8_e4m3fn")];
    const [ofX, ofW] = [f.input([devices, 6, 2], "float"), f.input([2, 2], "float")];
    const y = scaledLinear(x, w, ofX, ofW);
    f.output(y);
    for (const tensor of [x, w, ofX, ofW, y]) tensor.setDeviceMesh(DeviceMesh.range(devices));
    for (const tensor of [x, ofX]) tensor.axis(0).parallelize("DIDx");
    y.axis(0).parallelize("Stream");
    return f;
  },
  sum: () => {
    const f = new Fusion();
    // An odd number of elements for narrow accesses, so that a slice of few bytes takes several blocks.
    const x = f.input([devices, 3, 1101], "float");
    const total = sum(x, [0]);
    const y = add(total, total);
    f.output(y);
    for (const tensor of [x, total, y]) tensor.setDeviceMesh(DeviceMesh.range(devices));
    x.axis(0).parallelize("DIDx");
    return f;
  },
  gather: () => {
    const f = new Fusion();
    const x = f.input([3, devices, 5], "int64");
    const y = set(x);
    f.output(y);
    for (const tensor of [x, y]) tensor.setDeviceMesh(DeviceMesh.range(devices));
    x.axis(1).parallelize("DIDx");
    return f;
  },
  // A kernel whose lanes vote.
  scatter: () => {
    const f = new Fusion();
    const [x, index, source] = [f.input([40], "float"), f.input([70], "int"), f.input([70], "float")];
    f.output(scatterAdd(x, 0, index, source));
    for (const tensor of f.inputs) tensor.setDeviceMesh(DeviceMesh.range(devices));
    return f;
  },
  // One device's chunk of the contraction after the other, the first operand read transposed.
  contraction: () => layoutFusion({ gathered: "K", operands: "TN" }, { devices, chunks: null, dtype: "half" }),
};

/**
 * The ring under a schedule: the own chunk in place, copies by a kernel on a copy stream, GEMMs on the caller's stream.
 */
const schedule: ScheduleOptions = {
  inPlace: true,
  splitChunks: 2,
  computeStreams: 1,
};

interface Idiom extends Partial<LoweringOptions> {
  readonly schedule?: ScheduleOptions;
}

const idioms: readonly Idiom[] = [
  { backend: "nccl", accumulate: true },
  { backend: "cuda", protocol: "get", accumulate: true },
  { backend: "cuda", protocol: "put", accumulate: true },
];

let failed = false;
for (const [name, build] of Object.entries(programs)) {
  const expectations = expectationsOf(build());
  const scheduled: Idiom = { backend: "cuda", protocol: "get", schedule };
  // Nothing moves between the devices of a scatter.
  const wanted = name === "scatter" ? idioms.slice(0, 1) : idioms;
  for (const lowering of name === "ring" ? [...wanted, scheduled] : wanted) {
    const on = createCudaBackend({ rendezvous: world, graph: "on", timeout: 20 });
    const problems = await checkCase(build(), expectations, { ...lowering, rank: world.rank, devices, on, repeat: 3 });
    failed ||= problems.length > 0;
    if (world.rank === 0) console.log(`${name} ${Object.values(lowering).join(" ")}: ${problems.join("; ") || "ok"}`);
  }
}
await world.leave();
process.exit(failed ? 1 : 0);
