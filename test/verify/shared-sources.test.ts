/** Ranks that receive from the same ones share what those know: the order must be that of the explicit closure. */
import { expect, it } from "vitest";
import { compile, DeviceMesh, Fusion, linear } from "@braid-compiler/braid";
import { at } from "../../src/support/invariant.ts";
import { commandIndex, createGraph } from "../../src/verify/order/graph.ts";
import { sweep } from "../../src/verify/order/sweep.ts";
import { orderOf, visitsOf } from "./closure/order.ts";

const [devices, chunks, runs] = [17, 2, 2];

/** Each chunk of rows lies on nine of the ranks, and the one in the middle has rows of both. */
function unevenGather(): Fusion {
  const f = new Fusion();
  const [x, w] = [f.input([2 * devices, 2]), f.input([2, 2])];
  const y = linear(x, w);
  f.output(y);
  for (const tensor of [x, w]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  x.outerSplit(0, devices).parallelize("DIDx");
  y.outerSplit(0, chunks).parallelize("Stream");
  return f;
}

it("what a rank knows after an exchange with many is what the closure says", () => {
  const { program } = compile(unevenGather(), { devices });
  const most = Math.max(...program.transfers.map(({ participants }) => participants.length));
  expect([program.transfers.map(({ kind }) => kind), most]).toEqual([["group", "group"], devices]);

  const visits = visitsOf(program, runs);
  const order = orderOf(program, visits, "eager");
  const graph = createGraph(program);
  const numbers = new Map(visits.map(({ rank, run, index }, v) => [`${rank} ${run} ${index}`, v]));
  const chains = graph.chains.map(({ rank, stream }) =>
    visits.flatMap((visit, v) => (visit.rank === rank && visit.stream === stream ? [v] : [])),
  );
  const differing: string[] = [];
  let compared = 0;
  sweep(graph, runs, {
    every: true,
    starts: (node, visit, chain, _position, known) => {
      const rank = at(graph.rankOf, node);
      const name = `${rank} ${Math.floor(visit / graph.nodeCount)} ${commandIndex(graph, node)}`;
      const own = numbers.get(name) ?? -1;
      for (const [other, earlier] of chains.entries()) {
        if (other === chain) continue;
        compared++;
        const before = earlier.filter((v) => order?.before(v, own)).length;
        if (known.of(other) !== before) differing.push(`${name}: ${known.of(other)} of chain ${other}, not ${before}`);
      }
    },
  });
  expect(compared).toBeGreaterThan(10_000);
  expect(differing).toEqual([]);
});
