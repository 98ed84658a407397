/**
 * nvFuser's test_multidevice_stream_parallel_type.cpp, items 7 to 11: a DID axis that becomes the Stream axis, alone,
 * before a matmul and after one, on 1 to 8 devices against the oracle; and the linear Allgather of #4515.
 */
import { describe, expect, it } from "vitest";
import { DeviceMesh, Fusion, lower, set } from "@braid-compiler/braid";
import type { HostProgram, Statement } from "../../src/host/nodes.ts";
import { walk } from "../../src/host/traverse.ts";
import { allgather, allgatherMatmul } from "../support/point-to-point-fusions.ts";
import { schedules } from "../support/point-to-point-schedules.ts";
import { patterns } from "./point-to-point-patterns.ts";

const deviceCounts = [1, 2, 3, 4, 5, 6, 7, 8];
const streams = ["SetCurrentStream", "Synchronize"];

const kinds = (statements: readonly Statement[]): readonly string[] => statements.map(({ kind }) => kind);
const topLevel = (host: HostProgram): readonly string[] => kinds(host.body).filter((kind) => kind !== "Deallocate");

function lastLoop(host: HostProgram): readonly Statement[] {
  const last = host.body.findLast((statement) => statement.kind === "ForLoop");
  return last?.kind === "ForLoop" ? last.body : [];
}

describe.each(patterns)("$name", ({ build, options = {}, exchanged, rooted }) => {
  describe.each(Object.entries(schedules))("%s", (_, schedule) => {
    it("has nvFuser's statements at top level", () => {
      for (const devices of deviceCounts) {
        const host = lower(build(devices), { ...options, ...schedule });
        expect(topLevel(host)).toEqual(schedule.p2p === "broadcast" ? rooted : exchanged);
      }
    });
  });
});

describe("the loop body", () => {
  const copy = ["HirAliasSelect", "Set"];
  const coalesced = ["StartCoalescing", "P2PCommunication", "P2PCommunication", "EndCoalescing", "Wait"];
  const oneSided = ["ShareMemHandles", "P2PCommunication", "P2PCommunication", "Wait"];

  it("of a gather is a branch between a copy and an exchange, before the matmul", () => {
    const body = lastLoop(lower(allgatherMatmul(8)));
    expect(kinds(body)).toEqual([
      "SetCurrentStream",
      "HirAliasSelect",
      "IfThenElse",
      "HirAliasSelect",
      "Matmul",
      ...streams,
    ]);
    const branch = body.find((statement) => statement.kind === "IfThenElse");
    expect(branch?.kind === "IfThenElse" ? [kinds(branch.then), kinds(branch.else)] : []).toEqual([copy, coalesced]);
  });

  it("of a one-sided gather waits for the send after the matmul", () => {
    const body = lastLoop(lower(allgatherMatmul(8), { backend: "cuda" }));
    expect(kinds(body)).toEqual([
      "SetCurrentStream",
      "HirAliasSelect",
      "IfThenElse",
      "HirAliasSelect",
      "Matmul",
      "IfThenElse",
      ...streams,
    ]);
    const branches = body.flatMap((statement) => (statement.kind === "IfThenElse" ? [statement] : []));
    expect(branches.map((branch) => [kinds(branch.then), kinds(branch.else)])).toEqual([
      [copy, oneSided],
      [[], ["Wait"]],
    ]);
    expect(branches[0]?.predicate).toEqual(branches[1]?.predicate);
  });

  it.each([
    ["get", ["send", "recv"]],
    ["put", ["recv", "send"]],
  ] as const)("posts the half that signals first: %s", (protocol, order) => {
    const host = lower(allgather(4), { backend: "cuda", protocol });
    const posted = walk(host.body).flatMap((statement) =>
      statement.kind === "P2PCommunication" ? [statement.type] : [],
    );
    expect(posted).toEqual(order);
  });

  it("AllgatherInterStreamSyncNoWrap: a branch in the loop synchronizes the next stream with this one", () => {
    const host = lower(allgather(4), { backend: "cuda", interStreamSync: true });
    const branches = lastLoop(host).flatMap((statement) => (statement.kind === "IfThenElse" ? [statement.then] : []));
    expect(branches.map(kinds)).toContainEqual(["SetCurrentStream", "Synchronize", "SetCurrentStream"]);
  });
});

it("a rank outside the mesh has nothing to do", () => {
  const f = new Fusion();
  const x = f.input([3, 3, 5]);
  const y = set(x);
  f.output(y);
  for (const tensor of [x, y]) tensor.setDeviceMesh(new DeviceMesh([2, 0, 3]));
  x.axis(1).parallelize("DIDx");
  y.axis(1).parallelize("Stream");
  expect(lower(f, { rank: 1 }).body).toEqual([]);
});
