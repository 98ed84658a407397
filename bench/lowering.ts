/**
 * Times lowering, and recording with linking: chains of 1,000 and 10,000 ops, 250 and 2,500 loops over the devices
 * (each with branches), one loop of 1,000 and 10,000 ops, and the AG+matmul pipeline on 8 ranks.
 */
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

/** Every second op gathers in a loop over the devices whose iterations branch. The other ops shard again. */
function deviceLoops(loops: number): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(8);
  let last = f.input([8, 6], "float");
  last.setDeviceMesh(mesh);
  last.axis(0).parallelize("DIDx");
  for (let i = 0; i < 2 * loops; i++) {
    last = set(last);
    last.setDeviceMesh(mesh);
    last.axis(0).parallelize(i % 2 === 0 ? "Stream" : "DIDx");
  }
  f.output(last);
  return f;
}

function oneLoop(ops: number): Fusion {
  const f = new Fusion();
  let last = f.input([16, 8], "float");
  for (let i = 0; i < ops; i++) {
    last = add(last, last);
    last.axis(0).parallelize("Stream");
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
  const bench = new Bench({ name: "lowering", time: 1000, iterations: 10, warmupIterations: 2, warmupTime: 200 });
  const fusions = new Map([1000, 10_000].map((ops) => [ops, chain(ops)]));
  for (const [ops, fusion] of fusions) bench.add(`lower ${ops} ops, one rank`, () => void lower(fusion));
  for (const loops of [250, 2500]) {
    const fusion = deviceLoops(loops);
    bench.add(`lower ${loops} loops over the devices, one rank`, () => void lower(fusion));
  }
  for (const ops of [1000, 10_000]) {
    const fusion = oneLoop(ops);
    bench.add(`lower one loop of ${ops} ops`, () => void lower(fusion));
  }
  const devices = 8;
  const pipeline = allgatherMatmul(8, devices);
  const hosts = Array.from({ length: devices }, (_, rank) => lower(pipeline, { rank }));
  bench.add("record and link AG+matmul, 8 ranks, 8 chunks", () => {
    link(hosts.map((host, rank) => record(host, { rank, sizes: new Map(), streams: 8 })));
  });
  await bench.run();
  return bench;
}
