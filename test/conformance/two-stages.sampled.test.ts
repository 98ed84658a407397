/**
 * nvFuser's test_multidevice_pipeline.cpp: two stages on every pair of meshes of its suites. The number of
 * communications is what the decision table says, and the results are the oracle's.
 */
import { expect, it } from "vitest";
import { add, DeviceMesh, Fusion, set, sum } from "@braid-compiler/braid";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { sample } from "../support/suite.ts";

const [mesh0, mesh1, mesh2, mesh3, mesh4, mesh5] = [[0], [1], [0, 1, 2, 3], [0, 2, 3], [1, 0, 2], [1, 0]] as const;
const allMeshes = [mesh0, mesh1, mesh2, mesh3, mesh4, mesh5];
const nontrivialMeshes = [mesh2, mesh3, mesh4, mesh5];

type Mesh = readonly number[];

interface Stages {
  readonly from: Mesh;
  readonly to: Mesh;
  readonly sharded0: boolean;
  readonly sharded1: boolean;
  readonly dim: number;
  readonly reduces: boolean;
}

const sameMesh = (a: Mesh, b: Mesh): boolean => a.join() === b.join();

/** The row of the decision table. */
function expected({ from, to, sharded0, sharded1, reduces }: Stages): string {
  const same = sameMesh(from, to);
  if (reduces) return sharded1 ? "ReduceScatter 1" : same ? "Allreduce 1" : `Reduce ${to.length}`;
  if (sharded0 && sharded1) return same ? "" : `SendRecv ${to.length}`;
  if (sharded0) return same ? "Allgather 1" : `Gather ${to.length}`;
  if (sharded1) return "Scatter 1";
  // Each receiver has a counterpart, or there is one receiver, which has none of it.
  const isPaired = (from.length === to.length || to.length === 1) && !to.some((device) => from.includes(device));
  return same ? "" : isPaired ? `SendRecv ${to.length}` : "Broadcast 1";
}

/** A sum over the last axis, a Set or a sum over `dim` to the other mesh, and an add there. */
function twoStages({ from, to, sharded0, sharded1, dim, reduces }: Stages): Fusion {
  const shape = [3, 2, 3, 5];
  if (sharded0) shape[dim] = from.length;
  if (sharded1) shape[reduces ? dim + 1 : dim] = to.length;
  const f = new Fusion();
  const tv0 = f.input(shape);
  const tv1 = sum(tv0, [3]);
  const tv2 = reduces ? sum(tv1, [dim]) : set(tv1);
  const tv3 = add(tv2, tv2);
  f.output(tv3);
  for (const tensor of [tv0, tv1]) {
    tensor.setDeviceMesh(new DeviceMesh(from));
    if (sharded0) tensor.axis(dim).parallelize("DIDx");
  }
  for (const tensor of [tv2, tv3]) {
    tensor.setDeviceMesh(new DeviceMesh(to));
    // A reduced axis counts in the loop domain of the tensor that the reduction makes, and is gone in the next.
    if (sharded1) tensor.axis(reduces && tensor === tv2 ? dim + 1 : dim).parallelize("DIDx");
  }
  return f;
}

const pairs = (from: readonly Mesh[], to: readonly Mesh[]): readonly (readonly [Mesh, Mesh])[] =>
  from.flatMap((a) => to.map((b) => [a, b] as const));

const suites: readonly (readonly [string, readonly Stages[]])[] = [
  [
    "Gather",
    pairs(allMeshes, allMeshes).map(([from, to]) => ({
      from,
      to,
      sharded0: true,
      sharded1: false,
      dim: 0,
      reduces: false,
    })),
  ],
  [
    "Scatter",
    pairs([mesh0, mesh1], [mesh2, mesh4, mesh5]).map(([from, to]) => ({
      from,
      to,
      sharded0: false,
      sharded1: true,
      dim: 0,
      reduces: false,
    })),
  ],
  [
    "Bcast",
    pairs(allMeshes, allMeshes).flatMap(([from, to]) =>
      [0, 1].map((dim) => ({ from, to, sharded0: false, sharded1: false, dim, reduces: false })),
    ),
  ],
  [
    "Bcast_sharded",
    pairs([mesh3, mesh4], [mesh3, mesh4]).map(([from, to]) => ({
      from,
      to,
      sharded0: true,
      sharded1: true,
      dim: 0,
      reduces: false,
    })),
  ],
  [
    "Bcast_sharded_same_mesh",
    [mesh0, mesh1].map((mesh) => ({ from: mesh, to: mesh, sharded0: true, sharded1: true, dim: 0, reduces: false })),
  ],
  [
    "Reduce",
    pairs(nontrivialMeshes, allMeshes).flatMap(([from, to]) =>
      [0, 1].map((dim) => ({ from, to, sharded0: true, sharded1: false, dim, reduces: true })),
    ),
  ],
  [
    "ReduceScatter",
    nontrivialMeshes.map((mesh) => ({ from: mesh, to: mesh, sharded0: true, sharded1: true, dim: 0, reduces: true })),
  ],
];

const cases = suites.flatMap(([suite, rows]) => rows.map((stages) => ({ suite, ...stages })));

it.each(sample(cases, 23))("two stages, $suite, $from to $to, axis $dim", async (stages) => {
  const devices = Math.max(...stages.from, ...stages.to) + 1;
  expect(collectivesOf(twoStages(stages), devices)).toBe(expected(stages));
  await expectOracle(twoStages(stages), { devices });
});
