/**
 * One rank of a test on fake GPUs of an executor whose budget holds one Program: each size releases the last one's
 * memory, which peers have mapped. Rank 0 prints what the executor held in the end.
 */
import process from "node:process";
import { createCudaBackend } from "../../../../src/cuda.ts";
import { MultiDeviceExecutor } from "../../../../src/executor/multi-device-executor.ts";
import { isSharded } from "../../../../src/executor/tensor-arguments.ts";
import { DeviceMesh } from "../../../../src/ir/device-mesh.ts";
import { Fusion } from "../../../../src/ir/api/fusion.ts";
import { set } from "../../../../src/ir/api/ops.ts";
import { enterWorld } from "../../../../src/launch/enter-world.ts";
import { rankEnvironment } from "../../../../src/launch/rank-environment.ts";
import { emptyTensor } from "../../../../src/numerics/tensor/host-tensor.ts";

const who = rankEnvironment(process.env);
if (who === null) throw new Error("no rank in the environment");
const world = await enterWorld(who, process.env, 20_000);
const { rank, worldSize: devices } = world;

const f = new Fusion();
const x = f.input([devices, null], "int64");
const y = set(x);
f.output(y);
for (const tensor of [x, y]) tensor.setDeviceMesh(DeviceMesh.range(devices));
x.axis(0).parallelize("DIDx");

const executor = await MultiDeviceExecutor.create(f, {
  devices,
  on: createCudaBackend({ rendezvous: world }),
  backend: "cuda",
  localRanks: [rank],
  memoryBudget: 1,
});
for (const n of [300, 70_000, 5, 300, 300, 70_000]) {
  const input = emptyTensor("int64", [devices, n]);
  input.data.forEach((_, i) => {
    input.data[i] = BigInt(n + i);
  });
  const [result] = await executor.run([input]);
  const shard = result !== undefined && isSharded(result) ? result[rank] : null;
  if (shard?.data.every((value, i) => value === BigInt(n + i)) !== true) throw new Error(`wrong result of ${n}`);
}
if (rank === 0) {
  const { programs, released } = executor.memory;
  console.log(JSON.stringify({ programs, released }));
}
await executor.close();
await world.leave();
process.exit(0);
