/**
 * Loops over the devices of any mesh: those that do not begin at device 0, are out of order, or have two dimensions,
 * with the axis at any position. Peers are positions along the DID type, not device ids.
 */
import { it } from "vitest";
import { amax, amin, DeviceMesh, type DType, Fusion, prod, set, sum } from "@braid-compiler/braid";
import type { NestedDevices } from "../../src/ir/device-mesh.ts";
import { keysOf } from "../../src/support/invariant.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { schedules } from "../support/point-to-point-schedules.ts";
import { combinations } from "../support/split-cases.ts";
import { sample } from "../support/suite.ts";

const meshes: readonly NestedDevices[] = [
  [1],
  [1, 2],
  [2, 0, 3],
  [3, 2, 1, 0],
  [0, 2, 4],
  [
    [0, 1],
    [2, 3],
  ],
  [
    [4, 1],
    [0, 3],
    [2, 5],
  ],
];

type Type = "DIDx" | "DIDy";

interface Pattern {
  readonly name: string;
  /** `type` is the type over whose devices the loop runs, `other` the type of a second mesh dimension. */
  readonly build: (mesh: DeviceMesh, type: Type, other: Type | null) => Fusion;
}

/** Shards an axis that all patterns keep along the other dimension of the mesh. */
function around(mesh: DeviceMesh, other: Type | null): { readonly extent: number; readonly type: Type | "Serial" } {
  return other === null ? { extent: 3, type: "Serial" } : { extent: mesh.size(other), type: other };
}

const patterns: readonly Pattern[] = [
  {
    name: "gather",
    build: (mesh, type, other) => {
      const f = new Fusion();
      const kept = around(mesh, other);
      // The kept axis comes before the other, or after it.
      const gathered = type === "DIDx" ? 1 : 0;
      const x = f.input([kept.extent, 5].toSpliced(gathered, 0, mesh.size(type)));
      const y = set(x);
      f.output(y);
      for (const tensor of [x, y]) {
        tensor.setDeviceMesh(mesh);
        tensor.axis(1 - gathered).parallelize(kept.type);
      }
      x.axis(gathered).parallelize(type);
      y.axis(gathered).parallelize("Stream");
      return f;
    },
  },
  {
    name: "gather of scalars",
    build: (mesh, type) => {
      const f = new Fusion();
      const x = f.input([mesh.size(type)], "double");
      const y = set(x);
      f.output(y);
      for (const tensor of [x, y]) tensor.setDeviceMesh(mesh);
      x.axis(0).parallelize(type);
      y.axis(0).parallelize("Stream");
      return f;
    },
  },
  {
    name: "exchange of axes that are not neighbours",
    build: (mesh, type, other) => {
      const f = new Fusion();
      const kept = around(mesh, other);
      const x = f.input([kept.extent, mesh.size(type), 2, mesh.size(type), 3]);
      const y = set(x);
      const z = sum(y, [3]);
      f.output(z);
      for (const tensor of [x, y, z]) {
        tensor.setDeviceMesh(mesh);
        tensor.axis(0).parallelize(kept.type);
      }
      x.axis(3).parallelize(type);
      y.axis(3).parallelize("Stream");
      y.axis(1).parallelize(type);
      z.axis(1).parallelize(type);
      return f;
    },
  },
  {
    name: "reduce",
    build: (mesh, type, other) => {
      const f = new Fusion();
      const kept = around(mesh, other);
      const x = f.input([kept.extent, mesh.size(type), mesh.size(type), 2]);
      const y = sum(x, [1]);
      f.output(y);
      for (const tensor of [x, y]) {
        tensor.setDeviceMesh(mesh);
        tensor.axis(0).parallelize(kept.type);
      }
      x.axis(1).parallelize(type);
      y.axis(1).parallelize("Stream");
      y.axis(2).parallelize(type);
      return f;
    },
  },
];

function cases(devices: NestedDevices): readonly (readonly [Type, Type | null])[] {
  return new DeviceMesh(devices).shape.length === 1
    ? [["DIDx", null]]
    : [
        ["DIDx", "DIDy"],
        ["DIDy", "DIDx"],
      ];
}

const onMeshes = combinations({ pattern: patterns, schedule: Object.keys(schedules), mesh: meshes });

it.each(sample(onMeshes, 29, 2))(
  "$pattern.name, $schedule, on mesh $mesh",
  async ({ pattern, schedule, mesh: nested }) => {
    const mesh = new DeviceMesh(nested);
    const devices = Math.max(...mesh.devices) + 1;
    for (const [type, other] of cases(nested)) {
      for (const streams of [1, 3]) {
        await expectOracle(pattern.build(mesh, type, other), { devices, streams, ...schedules[schedule] });
      }
    }
  },
);

const reductions = { sum, prod, amax, amin };
const dtypes: readonly DType[] = ["float", "double", "half", "bfloat16", "int", "int64"];
const overDevices = combinations({ name: keysOf(reductions), dtype: dtypes, schedule: Object.keys(schedules) });

it.each(sample(overDevices, 37, 2))("$name over the devices, $dtype, $schedule", async ({ name, dtype, schedule }) => {
  const f = new Fusion();
  const x = f.input([3, 3, 4], dtype);
  const y = reductions[name](x, [0]);
  f.output(y);
  for (const tensor of [x, y]) tensor.setDeviceMesh(new DeviceMesh([2, 0, 1]));
  x.axis(0).parallelize("DIDx");
  y.axis(0).parallelize("Stream");
  y.axis(1).parallelize("DIDx");
  await expectOracle(f, { devices: 3, streams: 2, ...schedules[schedule] });
});
