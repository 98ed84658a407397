/**
 * nvFuser's test_multidevice_stream_parallel_type.cpp, the collective pipelines, on 1 to 8 devices against the oracle.
 * The loops over devices are in point-to-point.test.ts, the forms without Stream in lower-communication.test.ts.
 */
import { describe, expect, it } from "vitest";
import { lower } from "@braid-compiler/braid";
import { pipelines } from "./collective-pipeline-cases.ts";

const deviceCounts = [1, 2, 3, 4, 8];
describe.each(pipelines)("$name", ({ build, kinds, body, insertReshardingAfter = false }) => {
  it.each(deviceCounts)("has nvFuser's statements on %i devices", (devices) => {
    const host = lower(build(devices), { insertReshardingAfter });
    expect(host.body.map(({ kind }) => kind).filter((kind) => kind !== "Deallocate")).toEqual(kinds);
    const last = host.body.findLast((statement) => statement.kind === "ForLoop");
    if (body !== undefined) expect(last?.kind === "ForLoop" ? last.body.map(({ kind }) => kind) : []).toEqual(body);
  });
});
