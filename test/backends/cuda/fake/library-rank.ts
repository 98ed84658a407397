/**
 * One rank of a test on fake GPUs whose cuBLASLt has an algorithm: linears in floats of 8 bits by every recipe, forward
 * and backward, biases of 16 bits, and sums of two devices in GEMMs. Prints a line for each.
 */
import process from "node:process";
import { createCudaBackend } from "../../../../src/cuda.ts";
import { DeviceMesh } from "../../../../src/ir/device-mesh.ts";
import { Fusion } from "../../../../src/ir/api/fusion.ts";
import { gradients } from "../../../../src/ir/api/gradients.ts";
import { float8Linear, linear } from "../../../../src/ir/api/ops.ts";
import { float8Recipes } from "../../../../src/ir/fusion-data.ts";
import { enterWorld } from "../../../../src/launch/enter-world.ts";
import { rankEnvironment } from "../../../../src/launch/rank-environment.ts";
import { checkCase } from "../../../gpu/check-case.ts";
import { expectationsOf } from "../../../gpu/expectation.ts";
import { worldCases } from "../../../gpu/world-cases.ts";

const who = rankEnvironment(process.env);
if (who === null) throw new Error("no rank in the environment");
const world = await enterWorld(who, process.env, 20_000);
const devices = world.worldSize;

/** The weight cut along its rows or its columns. Lines of scales are padded, and the last blocks of rows are shorter. */
function linearOf8Bits(recipe: (typeof float8Recipes)[number], axis: number): Fusion {
  const [m, n, k] = [18, 144 * devices, 128 * devices];
  const f = new Fusion();
  const [x, w, dy] = [f.input([m, k], "bfloat16"), f.input([n, k], "bfloat16"), f.input([m, n], "bfloat16")];
  for (const tensor of [x, w, dy]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  w.outerSplit(axis, devices).parallelize("DIDx");
  const y = float8Linear(x, w, null, recipe);
  f.output(y);
  const found = gradients(f, { of: [y], wrt: [x, w], cotangents: [dy] });
  for (const gradient of found) if (gradient !== null) f.output(gradient);
  return f;
}

/** Results that nearly cancel: rounding before the bias is added would show. */
function linearsWithBias(): Fusion {
  const f = new Fusion();
  const x = f.input([24 * devices, 7], "bfloat16");
  const others = [8, 9].flatMap((columns) => {
    const [w, bias] = [f.input([columns, 7], "bfloat16"), f.input([columns], "bfloat16")];
    f.output(linear(x, w, bias));
    return [w, bias];
  });
  for (const tensor of [x, ...others]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  x.outerSplit(0, devices).parallelize("DIDx");
  return f;
}

const summed = worldCases.find(({ name }) => name === "matmul + reduce-scatter by peers");
if (summed === undefined) throw new Error("no case of a reduce-scatter");
const cases = [
  ...float8Recipes.flatMap((recipe) =>
    [0, 1].map((axis) => ({
      name: `${recipe}, weight cut along ${axis}`,
      build: () => linearOf8Bits(recipe, axis),
      options: { backend: "nccl" } as const,
    })),
  ),
  { name: "linears with a bias", build: linearsWithBias, options: { backend: "nccl" } as const },
  {
    name: "sums in GEMMs",
    build: () => summed.build(devices),
    options: { backend: "cuda", protocol: "get", schedule: { gemmSums: true } } as const,
  },
];

let failed = false;
for (const { name, build, options } of cases) {
  const on = createCudaBackend({ rendezvous: world, graph: "on", timeout: 20 });
  const given = { ...options, rank: world.rank, devices, on, repeat: 2 };
  const problems = await checkCase(build(), expectationsOf(build()), given);
  failed ||= problems.length > 0;
  if (world.rank === 0 || problems.length > 0) console.log(`${name}: ${problems.join("; ") || "ok"}`);
}
await world.leave();
process.exit(failed ? 1 : 0);
