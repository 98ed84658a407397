/**
 * Ops that share a loop over the devices: several exchanges, collectives along another dimension of the mesh, ops
 * before and after.
 */
import { describe, expect, it } from "vitest";
import { DeviceMesh, Fusion, lower, matmul, mul, set, sum, type TensorView } from "@braid-compiler/braid";
import type { HostProgram, Statement } from "../../src/host/nodes.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { schedules } from "../support/point-to-point-schedules.ts";
import { everyNth } from "../support/suite.ts";

/** Per loop that computes, how many statements of each of these kinds it holds. */
function loops({ body }: HostProgram): readonly string[] {
  return body.flatMap((statement) => {
    if (statement.kind !== "ForLoop" || statement.body.length <= 2) return [];
    return [
      statement.body
        .map(named)
        .filter((name) => name !== "")
        .join(" "),
    ];
  });
}

function named(statement: Statement): string {
  switch (statement.kind) {
    case "IfThenElse":
      return statement.then.length > 0 ? "exchange" : "";
    case "Communication":
      return statement.type;
    case "Binary":
    case "Matmul":
    case "Set":
      return statement.kind;
    default:
      return "";
  }
}

function onMesh(mesh: DeviceMesh, tensors: readonly TensorView[]): void {
  for (const tensor of tensors) tensor.setDeviceMesh(mesh);
}

/** Two sharded operands of one matmul. */
function twoGathers(): Fusion {
  const f = new Fusion();
  const [a, b] = [f.input([3, 4, 2]), f.input([3, 4, 2])];
  const c = mul(a, b);
  f.output(c);
  onMesh(DeviceMesh.range(3), [a, b, c]);
  for (const tensor of [a, b]) tensor.axis(0).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}

/** Rows sharded along DIDy, the contraction along DIDx: gather of rows, partial results, Allreduce. */
function gatherAndAllreduce(): Fusion {
  const f = new Fusion();
  const a = f.input([2, 3, 4, 2]);
  const b = f.input([3, 2, 5]);
  const partial = matmul(a, b);
  const c = sum(partial, [1]);
  f.output(c);
  onMesh(
    new DeviceMesh([
      [0, 1, 2],
      [5, 4, 3],
    ]),
    [a, b, partial, c],
  );
  a.axis(0).parallelize("DIDy");
  for (const tensor of [a, partial]) tensor.axis(1).parallelize("DIDx");
  b.axis(0).parallelize("DIDx");
  for (const tensor of [partial, c]) tensor.axis(0).parallelize("Stream");
  return f;
}

/** Rows sharded along DIDx, columns of the result too: gather of rows, then of columns. */
function gatherAndAllgather(): Fusion {
  const f = new Fusion();
  const x = f.input([2, 4, 3]);
  const w = f.input([3, 2]);
  const y = matmul(x, w);
  const z = set(y);
  f.output(z);
  onMesh(DeviceMesh.range(2), [x, w, y, z]);
  x.axis(0).parallelize("DIDx");
  w.axis(1).parallelize("DIDx");
  y.axis(2).parallelize("DIDx");
  for (const tensor of [y, z]) tensor.axis(0).parallelize("Stream");
  return f;
}

interface Case {
  readonly name: string;
  readonly build: () => Fusion;
  readonly devices: number;
  readonly exchanged: readonly string[];
  readonly rooted: readonly string[];
}

const cases: readonly Case[] = [
  {
    name: "two exchanges feed one op",
    build: twoGathers,
    devices: 3,
    exchanged: ["exchange exchange Binary"],
    rooted: ["Broadcast Broadcast Binary"],
  },
  {
    name: "a collective along another dimension of the mesh stays",
    build: gatherAndAllreduce,
    devices: 6,
    exchanged: ["exchange Matmul Allreduce"],
    rooted: ["Broadcast Matmul Allreduce"],
  },
  {
    name: "a collective among devices that exchange has a loop of its own",
    build: gatherAndAllgather,
    devices: 2,
    exchanged: ["exchange Matmul", "Allgather"],
    rooted: ["Broadcast Matmul Allgather"],
  },
];

describe.each(cases)("$name", ({ build, devices, exchanged, rooted }) => {
  it("in the loops of every rank", () => {
    for (let rank = 0; rank < devices; rank++) {
      expect(loops(lower(build(), { rank }))).toEqual(exchanged);
      expect(loops(lower(build(), { rank, p2p: "linear" }))).toEqual(exchanged);
      expect(loops(lower(build(), { rank, p2p: "broadcast" }))).toEqual(rooted);
    }
  });

  it.each(everyNth(Object.entries(schedules), 4))("gives the oracle's result: %s", async (_, options) => {
    for (const streams of [1, 2, 3]) await expectOracle(build(), { devices, streams, ...options });
  });
});
