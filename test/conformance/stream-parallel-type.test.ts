/**
 * nvFuser's test_multidevice_stream_parallel_type.cpp, items 1 to 6 of the collective pipelines, and the whole-tensor forms of
 * test_multidevice_lower_communication.cpp, on 1 to 8 devices against the oracle.
 */
import { describe, expect, it } from "vitest";
import { broadcast, DeviceMesh, Fusion, lower, matmul, set, sum, type TensorView } from "braid";
import { expectOracle } from "../support/expect-oracle.ts";

const deviceCounts = [1, 2, 3, 4, 8];
const loop = ["Allocate", "GetCurrentStream", "ForLoop", "ForLoop"];

interface Case {
  readonly name: string;
  readonly build: (devices: number) => Fusion;
  /** Top-level statements, without Deallocate. */
  readonly kinds: readonly string[];
  /** Statements of the last loop, where there is one. */
  readonly body?: readonly string[];
  readonly insertReshardingAfter?: boolean;
}

function onMesh(tensors: readonly TensorView[], devices: number): void {
  for (const tensor of tensors) tensor.setDeviceMesh(DeviceMesh.range(devices));
}

function allgatherMatmul(devices: number): Fusion {
  const f = new Fusion();
  const a = f.input([8, devices, 2, 5]);
  const b = f.input([5, 3]);
  const c = matmul(a, b);
  f.output(c);
  onMesh([a, b, c], devices);
  a.axis(1).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}

const streams = ["SetCurrentStream", "Synchronize"];

const cases: readonly Case[] = [
  {
    name: "Allgather",
    build: (devices) => {
      const f = new Fusion();
      const x = f.input([4, devices]);
      const y = set(x);
      f.output(y);
      onMesh([x, y], devices);
      x.axis(1).parallelize("DIDx");
      y.axis(0).parallelize("Stream");
      return f;
    },
    kinds: loop,
    body: ["SetCurrentStream", "HirAliasSelect", "HirAliasSelect", "Allocate", "Communication", "Wait", ...streams],
  },
  {
    name: "Allreduce",
    build: (devices) => {
      const f = new Fusion();
      const x = f.input([4, devices, 8]);
      const y = sum(x, [1]);
      f.output(y);
      onMesh([x, y], devices);
      x.axis(1).parallelize("DIDx");
      y.axis(0).parallelize("Stream");
      return f;
    },
    kinds: loop,
    body: ["SetCurrentStream", "HirAliasSelect", "HirAliasSelect", "Allocate", "Communication", "Wait", ...streams],
  },
  {
    name: "ReduceScatter",
    build: (devices) => {
      const f = new Fusion();
      const x = f.input([4, devices, devices, 8]);
      const y = sum(x, [1]);
      f.output(y);
      onMesh([x, y], devices);
      x.axis(1).parallelize("DIDx");
      y.axis(0).parallelize("Stream");
      y.axis(2).parallelize("DIDx");
      return f;
    },
    kinds: loop,
    body: ["SetCurrentStream", "HirAliasSelect", "HirAliasSelect", "Allocate", "Communication", "Wait", ...streams],
  },
  {
    name: "AGMatmul, resharding before",
    build: allgatherMatmul,
    kinds: ["Allocate", ...loop],
    body: [
      "SetCurrentStream",
      "HirAliasSelect",
      "HirAliasSelect",
      "Allocate",
      "Communication",
      "Wait",
      "HirAliasSelect",
      "Matmul",
      ...streams,
    ],
  },
  {
    name: "AGMatmul, resharding after",
    build: allgatherMatmul,
    insertReshardingAfter: true,
    kinds: ["Allocate", ...loop],
    body: [
      "SetCurrentStream",
      "HirAliasSelect",
      "HirAliasSelect",
      "Matmul",
      "HirAliasSelect",
      "Allocate",
      "Communication",
      "Wait",
      ...streams,
    ],
  },
  {
    name: "matmul_AR",
    build: (devices) => {
      const f = new Fusion();
      const a = f.input([4, devices, 3, 2]);
      const b = f.input([devices, 2, 5]);
      const partial = matmul(a, b);
      const c = sum(partial, [1]);
      f.output(c);
      onMesh([a, b, partial, c], devices);
      a.axis(1).parallelize("DIDx");
      b.axis(0).parallelize("DIDx");
      partial.axis(0).parallelize("Stream");
      partial.axis(1).parallelize("DIDx");
      c.axis(0).parallelize("Stream");
      return f;
    },
    kinds: ["Allocate", ...loop],
  },
  {
    name: "matmul_RS_through_bcast",
    build: (devices) => {
      const f = new Fusion();
      const a = f.input([4, devices, devices, 2, 3]);
      const b = f.input([devices, 3, 2]);
      const weight = broadcast(b, [true, false, true, false, false]);
      const partial = matmul(a, weight);
      const c = sum(partial, [1]);
      f.output(c);
      onMesh([a, b, weight, partial, c], devices);
      a.axis(1).parallelize("DIDx");
      b.axis(0).parallelize("DIDx");
      weight.axis(1).parallelize("DIDx");
      partial.axis(0).parallelize("Stream");
      partial.axis(1).parallelize("DIDx");
      c.axis(0).parallelize("Stream");
      c.axis(2).parallelize("DIDx");
      return f;
    },
    kinds: ["PostOnStream", "Allocate", ...loop],
  },
];

describe.each(cases)("$name", ({ build, kinds, body, insertReshardingAfter = false }) => {
  it.each(deviceCounts)("has nvFuser's statements on %i devices", (devices) => {
    const host = lower(build(devices), { insertReshardingAfter });
    expect(host.body.map(({ kind }) => kind).filter((kind) => kind !== "Deallocate")).toEqual(kinds);
    const last = host.body.findLast((statement) => statement.kind === "ForLoop");
    if (body !== undefined) expect(last?.kind === "ForLoop" ? last.body.map(({ kind }) => kind) : []).toEqual(body);
  });

  it.each(deviceCounts)("gives the oracle's result on %i devices", async (devices) => {
    for (const count of [1, 3, 8])
      await expectOracle(build(devices), { devices, streams: count, insertReshardingAfter });
  });
});
