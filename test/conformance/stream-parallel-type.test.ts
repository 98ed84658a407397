/**
 * nvFuser's test_multidevice_stream_parallel_type.cpp, the collective pipelines, on 1 to 8 devices against the oracle. The loops over
 * devices are in point-to-point.test.ts, the forms without Stream in lower-communication.test.ts.
 */
import { describe, expect, it } from "vitest";
import { type Fusion, lower } from "braid";
import {
  allgatherChunks,
  allgatherMatmulChunks,
  allreduceChunks,
  matmulAllreduceChunks,
  matmulReduceScatterChunks,
  type PipelineSizes,
  reduceScatterChunks,
} from "../support/collective-pipelines.ts";
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

const gatheredSizes = (devices: number): PipelineSizes => ({ chunks: 8, m: 16 * devices, k: 5, n: 3 });
const allgatherMatmul = (devices: number): Fusion => allgatherMatmulChunks(devices, gatheredSizes(devices));

const streams = ["SetCurrentStream", "Synchronize"];

const cases: readonly Case[] = [
  {
    name: "Allgather",
    build: allgatherChunks,
    kinds: loop,
    body: ["SetCurrentStream", "HirAliasSelect", "HirAliasSelect", "Allocate", "Communication", "Wait", ...streams],
  },
  {
    name: "Allreduce",
    build: allreduceChunks,
    kinds: loop,
    body: ["SetCurrentStream", "HirAliasSelect", "HirAliasSelect", "Allocate", "Communication", "Wait", ...streams],
  },
  {
    name: "ReduceScatter",
    build: reduceScatterChunks,
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
    build: (devices) => matmulAllreduceChunks(devices, { chunks: 4, m: 12, k: 2 * devices, n: 5 }),
    kinds: ["Allocate", ...loop],
  },
  {
    name: "matmul_RS_through_bcast",
    build: (devices) => matmulReduceScatterChunks(devices, { chunks: 4, m: 8 * devices, k: 3 * devices, n: 2 }),
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
