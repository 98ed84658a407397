/**
 * Times lowering, and recording with linking: chains of 1,000 and 10,000 ops, 250 and 2,500 loops over the devices
 * (each with branches), one loop of 1,000 and 10,000 ops, and the AG+matmul pipeline on 8 ranks.
 */
import { add, DeviceMesh, Fusion, link, lower, record, set } from "@braid-compiler/braid";
import { gathered, mixedChain } from "./harness/programs.ts";
import type { Suite } from "./harness/suite.ts";

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

export function loweringSuite(): Suite {
  const lowered = [
    ...[1000, 10_000].map((ops) => ({ name: `lower ${ops} ops, one rank`, fusion: mixedChain(ops, [16, 8, 4]) })),
    ...[250, 2500].map((loops) => ({
      name: `lower ${loops} loops over the devices, one rank`,
      fusion: deviceLoops(loops),
    })),
    ...[1000, 10_000].map((ops) => ({ name: `lower one loop of ${ops} ops`, fusion: oneLoop(ops) })),
  ];
  const devices = 8;
  const pipeline = gathered([8, devices, 4, 64], 1, 32);
  const hosts = Array.from({ length: devices }, (_, rank) => lower(pipeline, { rank }));
  return {
    name: "lowering",
    options: { time: 1000, iterations: 10, warmupIterations: 2, warmupTime: 200 },
    tasks: [
      // Passes remember what they made of the same data.
      ...lowered.map(({ name, fusion }) => ({ name, run: () => void lower({ data: () => ({ ...fusion.data() }) }) })),
      {
        name: "record and link AG+matmul, 8 ranks, 8 chunks",
        run: () => void link(hosts.map((host, rank) => record(host, { rank, sizes: new Map(), streams: 8 }))),
      },
    ],
  };
}
