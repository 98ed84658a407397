/**
 * An axis that is split by the number of devices has one index on each of them, as an axis that has a DID type as a
 * whole. A loop over it exchanges data in the same way.
 */
import { describe, expect, it } from "vitest";
import { DeviceMesh, Fusion, linear, lower, type LowerOptions, set, sum, type TensorView } from "@braid-compiler/braid";
import { walk } from "../../../src/host/traverse.ts";
import { expectOracle } from "../../support/expect-oracle.ts";

/** Gives each device one index of an axis. */
type Shard = (tensor: TensorView, axis: number, devices: number) => void;

const byType: Shard = (tensor, axis) => tensor.axis(axis).parallelize("DIDx");
const bySplit: Shard = (tensor, axis, devices) => tensor.outerSplit(axis, devices).parallelize("DIDx");

const programs: Readonly<Record<string, (f: Fusion, devices: number, shard: Shard) => readonly TensorView[]>> = {
  "gathered by a linear": (f, devices, shard) => {
    const [x, w] = [f.input([devices, 4], "float"), f.input([3, 4], "float")];
    const y = linear(x, w);
    f.output(y);
    y.axis(0).parallelize("Stream");
    shard(x, 0, devices);
    return [x, w, y];
  },
  "exchanged by a set": (f, devices, shard) => {
    const x = f.input([devices, devices, 4], "float");
    const y = set(x);
    f.output(y);
    y.axis(0).parallelize("Stream");
    shard(x, 0, devices);
    shard(y, 1, devices);
    return [x, y];
  },
  "scattered by a sum": (f, devices, shard) => {
    const x = f.input([devices, devices, 4], "float");
    const y = sum(x, [0]);
    f.output(y);
    y.axis(0).parallelize("Stream");
    shard(x, 0, devices);
    shard(y, 1, devices);
    return [x, y];
  },
};

function build(name: string, devices: number, shard: Shard): Fusion {
  const f = new Fusion();
  const placed = programs[name]?.(f, devices, shard) ?? [];
  for (const tensor of placed) tensor.setDeviceMesh(DeviceMesh.range(devices));
  return f;
}

const options: readonly LowerOptions[] = [
  ...(["rotated", "linear", "broadcast"] as const).map((p2p) => ({ p2p })),
  ...(["get", "put"] as const).map((protocol) => ({ backend: "cuda", protocol }) as const),
  { overlap: false },
];

describe.each(Object.keys(programs))("%s", (name) => {
  it.each(options)("with %j: the oracle's result", async (own) => {
    for (const devices of [2, 3]) await expectOracle(build(name, devices, bySplit), { devices, ...own });
  });

  it.each(options)("with %j: the statements of an axis with a DID type", (own) => {
    const [split, typed] = [bySplit, byType].map((shard) =>
      walk(lower(build(name, 3, shard), { rank: 1, ...own }).body).map(({ kind }) => kind),
    );
    expect(split).toEqual(typed);
  });
});
