/**
 * Stream on parts of axes: every program gives the oracle's result on all back ends, and its host programs survive
 * their dumps.
 */
import { expect, it } from "vitest";
import { Fusion, lower } from "@braid-compiler/braid";
import { walk } from "../../../src/host/traverse.ts";
import { chunkedFusions } from "../../support/chunked-fusions.ts";
import { expectOracle } from "../../support/expect-oracle.ts";
import { expectRoundTrip } from "../../support/round-trip.ts";

it.each(chunkedFusions)("$name: the oracle's result", async ({ build, devices, options }) => {
  await expectOracle(build(), { devices, streams: 3, ...options });
});

it.each(chunkedFusions)("$name: round trip", ({ build, devices, options }) => {
  for (let rank = 0; rank < devices; rank++) {
    const host = lower(build(), { ...options, rank });
    expect(walk(host.body).filter(({ kind }) => kind === "ShardByStream").length).toBeGreaterThan(0);
    expectRoundTrip(host, [
      { rank, sizes: new Map(), scalars: new Map(), streams: 2, protocol: options?.protocol ?? "get" },
    ]);
  }
});

it.each(["fused MLP", "fused MLP, annotated on inputs"])("%s is one loop", (name) => {
  const { build } = chunkedFusions.find((each) => each.name === name) ?? {};
  const { body } = lower(build?.() ?? new Fusion());
  // One loop makes the streams wait, and one computes.
  expect(body.filter(({ kind }) => kind === "ForLoop")).toHaveLength(2);
  const kinds = walk(body).flatMap((each) => (each.kind === "Communication" ? [each.type] : []));
  expect(kinds).toEqual(["Allgather", "ReduceScatter"]);
});

it.each(["gathered once, read again, broadcast", "a view, gathered once, read again"])(
  "%s: in the loop of chunks",
  (which) => {
    const { build } = chunkedFusions.find(({ name }) => name === which) ?? {};
    const { body } = lower(build?.() ?? new Fusion(), { p2p: "broadcast" });
    const kinds = body.map((each) => walk([each]).filter(({ kind }) => kind === "Communication").length);
    expect(kinds.filter((count) => count > 0)).toEqual([1]);
  },
);
