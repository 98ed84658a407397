/** One process of a program in code over MPI: prints its ranks, and whether their shards are those of one process. */
import process from "node:process";
import { DeviceMesh, DiagnosticError, Fusion, linear, MultiDeviceExecutor } from "@braid-compiler/braid";
import { joinMpi } from "@braid-compiler/braid/mpi";

const devices = 4;

function fusion(): Fusion {
  const f = new Fusion();
  const [x, w] = [f.input([devices, 4, 8], "float"), f.input([6, 8], "float")];
  const y = linear(x, w);
  f.output(y);
  for (const tensor of [x, w, y]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  x.axis(0).parallelize("DIDx");
  y.axis(0).parallelize("Stream");
  return f;
}

const numbers = (count: number): Float32Array => Float32Array.from({ length: count }, (_, i) => (i % 13) - 6);
const inputs = [
  { dtype: "float", shape: [devices, 4, 8], data: numbers(devices * 32) },
  { dtype: "float", shape: [6, 8], data: numbers(48) },
] as const;

const mpi = joinMpi();
const ranks = mpi.ranksOf(devices);
const others = [ranks.includes(0) ? devices - 1 : 0];
const refused = await MultiDeviceExecutor.create(fusion(), { devices, on: mpi.backend, localRanks: others }).then(
  () => "",
  (error: unknown) => (error instanceof DiagnosticError ? error.diagnostics.map(({ code }) => code).join() : "?"),
);
const executor = await MultiDeviceExecutor.create(fusion(), { devices, on: mpi.backend, localRanks: ranks });
const [shards = []] = await executor.run(inputs);
await executor.close();
const alone = await MultiDeviceExecutor.create(fusion(), { devices });
const [whole] = await alone.run(inputs);
await alone.close();
const same = ranks.every((rank) => JSON.stringify(shards[rank]?.data) === JSON.stringify(whole?.data));
mpi.leave();
process.stdout.write(`${JSON.stringify({ rank: mpi.rank, size: mpi.size, ranks, same, refused })}\n`);
