/** How long lowering, and recording with linking, take: fusions of 1,000 and 10,000 ops, and the AG+matmul pipeline on 8 ranks. */
import { Bench } from "tinybench";
import { add, DeviceMesh, Fusion, link, lower, matmul, neg, record, set } from "braid";

/** A chain that mixes units, Stream loops and reshardings. */
function chain(ops: number): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(8);
  const input = f.input([16, 8, 4], "float");
  input.setDeviceMesh(mesh);
  let last = input;
  for (let i = 0; i < ops; i++) {
    const fused = i % 7 === 3;
    const next = fused ? neg(last) : i % 5 === 0 ? set(last) : add(last, input);
    next.setDeviceMesh(mesh);
    if (!fused && i % 11 < 8) next.axis(0).parallelize("Stream");
    if (i % 13 === 0) next.axis(1).parallelize("DIDx");
    last = next;
  }
  f.output(last);
  return f;
}

function allgatherMatmul(chunks: number, devices: number): Fusion {
  const f = new Fusion();
  const a = f.input([chunks, devices, 4, 64], "float");
  const b = f.input([64, 32], "float");
  const c = matmul(a, b);
  f.output(c);
  for (const tensor of [a, b, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  a.axis(1).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}

export async function benchLowering(): Promise<Bench> {
  const bench = new Bench({ name: "lowering", time: 1000 });
  const fusions = new Map([1000, 10_000].map((ops) => [ops, chain(ops)]));
  for (const [ops, fusion] of fusions) bench.add(`lower ${ops} ops, one rank`, () => void lower(fusion));
  const devices = 8;
  const pipeline = allgatherMatmul(8, devices);
  const hosts = Array.from({ length: devices }, (_, rank) => lower(pipeline, { rank }));
  bench.add("record and link AG+matmul, 8 ranks, 8 chunks", () => {
    link(hosts.map((host, rank) => record(host, { rank, sizes: new Map(), numberOfStreams: 8 })));
  });
  await bench.run();
  return bench;
}
