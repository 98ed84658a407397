/** Inputs without axes: numbers that are known only at run time, on every device that reads them. */
import {
  broadcast,
  cast,
  DeviceMesh,
  Fusion,
  lower,
  matmul,
  mul,
  parse,
  print,
  sub,
  Tensor,
} from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { add } from "../../src/ir/api/ops.ts";
import { walk } from "../../src/host/traverse.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { expectOracle } from "../support/expect-oracle.ts";

const promotions: readonly (readonly [tensor: DType, scalar: DType, result: DType])[] = [
  ["half", "float", "half"],
  ["bfloat16", "double", "bfloat16"],
  ["int", "int64", "int"],
  ["int64", "half", "half"],
  ["float", "int64", "float"],
  ["bool", "int", "int"],
];

it.each(promotions)("of %s and a scalar of %s give %s", (dtype, scalar, result) => {
  const f = new Fusion();
  const [x, s] = [f.input([4], dtype), f.input([], scalar)];
  expect(mul(x, s).dtype).toBe(result);
  expect(mul(s, x).dtype).toBe(result);
});

it("keep PyTorch's rule among themselves, and broadcast against any shape", () => {
  const f = new Fusion();
  const [s, t] = [f.input([], "half"), f.input([], "float")];
  const both = add(s, t);
  expect([both.dtype, both.rank]).toEqual(["float", 0]);
  const x = f.input([2, 3]);
  f.output(sub(both, x));
  const inputs = [
    Tensor.from(0.5, "half"),
    Tensor.from(2),
    Tensor.from([
      [1, 2, 3],
      [4, 5, 6],
    ]),
  ];
  const { outputs } = evaluateFusion(f.data(), inputs);
  expect(outputs.map((output) => Tensor.toArray(output))).toEqual([
    [
      [1.5, 0.5, -0.5],
      [-1.5, -2.5, -3.5],
    ],
  ]);
});

/** Two stages, each on half of the devices, and a number that both read. */
function stages(): Fusion {
  const f = new Fusion();
  const scale = f.input([]);
  for (const mesh of [DeviceMesh.range(2), new DeviceMesh([2, 3])]) {
    const x = f.input([2, 8]);
    const y = mul(x, scale);
    f.output(y);
    for (const tv of [x, y]) tv.setDeviceMesh(mesh).axis(0).parallelize("DIDx");
  }
  return f;
}

/** Rows in chunks, gathered and multiplied, and a number that scales every chunk. */
function pipeline(): Fusion {
  const f = new Fusion();
  const [a, b, scale] = [f.input([2, 2, 3, 8]), f.input([8, 4]), f.input([], "double")];
  const c = matmul(a, b);
  const d = mul(c, scale);
  f.output(d);
  const mesh = DeviceMesh.range(2);
  for (const tv of [a, b, c, d]) tv.setDeviceMesh(mesh);
  a.axis(1).parallelize("DIDx");
  for (const tv of [c, d]) tv.axis(0).parallelize("Stream");
  return f;
}

function computed(): Fusion {
  const f = new Fusion();
  const [x, s] = [f.input([2, 5], "half"), f.input([], "int")];
  const shifted = add(cast(s, "float"), 1);
  const y = mul(x, broadcast(mul(shifted, shifted), [true, true]));
  f.output(y);
  for (const tv of [x, y]) tv.setDeviceMesh(DeviceMesh.range(2)).axis(0).parallelize("DIDx");
  return f;
}

describe("run on every back end", () => {
  it.each([
    ["in two stages", stages, 4],
    ["in a loop", pipeline, 2],
    ["computed from", computed, 2],
  ] as const)("%s", async (_, build, devices) => {
    await expectOracle(build(), { devices });
  });

  it("without a mesh anywhere", async () => {
    const f = new Fusion();
    f.output(mul(f.input([3]), f.input([])));
    await expectOracle(f, { devices: 1 });
  });

  it("and cost no communication", () => {
    const kinds = [...walk(lower(stages(), { rank: 2 }).body)].map(({ kind }) => kind);
    expect(kinds).not.toContain("Communication");
    expect(kinds).toEqual(["PostOnStream"]);
  });
});

it("stay on the mesh that the user gives them", () => {
  const f = stages();
  f.inputs[0]?.setDeviceMesh(DeviceMesh.range(2));
  const kinds = [...walk(lower(f, { rank: 2 }).body)].map(({ kind }) => kind);
  expect(kinds).toContain("Communication");
});

it("print and are read back", () => {
  const dump = print(lower(stages(), { rank: 0 }));
  expect(dump).toContain("T0_g_float[]");
  expect(print(parse(dump))).toBe(dump);
});
