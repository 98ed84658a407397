/**
 * Times record, link and verify, the cost of a program before it first runs: allgather + matmul as a pipeline of
 * collectives and as a ring of sends and receives or of copies, with 8 devices and 8 chunks and with 64 of each; and
 * the part that is verification.
 */
import { Bench } from "tinybench";
import { type CommandList, DeviceMesh, Fusion, type HostProgram, link, lower, matmul, record, verify } from "braid";

interface Pipeline {
  readonly name: string;
  readonly fusion: (devices: number) => Fusion;
  readonly backend: "nccl" | "cuda";
}

function allgatherMatmul(shape: readonly number[], did: number, devices: number): Fusion {
  const f = new Fusion();
  const a = f.input(shape, "float");
  const b = f.input([64, 32], "float");
  const c = matmul(a, b);
  f.output(c);
  for (const tensor of [a, b, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  a.axis(did).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}

const pipelines: readonly Pipeline[] = [
  {
    name: "collectives",
    fusion: (devices) => allgatherMatmul([devices, devices, 4, 64], 1, devices),
    backend: "nccl",
  },
  {
    name: "ring, sends and receives",
    fusion: (devices) => allgatherMatmul([devices, 4, 64], 0, devices),
    backend: "nccl",
  },
  {
    name: "ring, copies",
    fusion: (devices) => allgatherMatmul([devices, 4, 64], 0, devices),
    backend: "cuda",
  },
];

function listsOf(hosts: readonly HostProgram[]): readonly CommandList[] {
  return hosts.map((host, rank) => record(host, { rank, streams: 8 }));
}

/** Each case has as many chunks as devices. */
export async function benchVerify(): Promise<Bench> {
  const bench = new Bench({
    name: "record, link and verify",
    iterations: 10,
    time: 500,
    warmupIterations: 3,
    warmupTime: 0,
  });
  for (const devices of [8, 64]) {
    for (const { name, fusion, backend } of pipelines) {
      const built = fusion(devices);
      const hosts = Array.from({ length: devices }, (_, rank) => lower(built, { rank, backend }));
      const program = link(listsOf(hosts));
      const commands = program.ranks.reduce((sum, rank) => sum + rank.commands.length, 0);
      if (!verify(program).ok) throw new Error(`${name} does not verify`);
      const label = `${name}, ${devices} x ${devices} (${commands} commands)`;
      bench.add(label, () => void verify(link(listsOf(hosts)), { notes: false }));
      bench.add(`${label}: verify alone`, () => void verify(program, { notes: false }));
    }
  }
  await bench.run();
  const { rss } = process.memoryUsage();
  console.log(`memory of the process after it: ${(rss / 2 ** 20).toFixed(0)} MiB`);
  return bench;
}
