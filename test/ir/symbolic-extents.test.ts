/** Extents that are known only at run time, wherever a call takes an extent or an index. */
import {
  add,
  DeviceMesh,
  type DiagnosticCode,
  Fusion,
  HostProgramBuilder,
  lower,
  matmul,
  mul,
  parse,
  print,
  reshape,
  select,
  slice,
  type TensorView,
} from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { sizesFromShapes } from "../../src/ir/sizes.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { diagnosticOf } from "./expect-diagnostic.ts";

/** The first rows of x, as many as y has, beside y, and the row of x after them. */
function firstRows(): Fusion {
  const f = new Fusion();
  const [x, y] = [f.input([null, 6]), f.input([null, 6])];
  f.output(add(slice(x, [0, 0], [y.axis(0), 6]), y));
  f.output(select(x, 0, y.axis(0)));
  f.output(slice(x, [y.axis(0), 1], [x.axis(0), 4]));
  return f;
}

/** The same in one host unit per device, where a mesh shards the columns. */
function sharded(): Fusion {
  const f = firstRows();
  for (const each of f.inputs) {
    each.setDeviceMesh(DeviceMesh.range(2));
    each.outerSplit(1, 2).parallelize("DIDx");
  }
  f.output(mul(add(f.outputs[0] ?? each(), 1), 2));
  return f;
}

function each(): never {
  throw new Error("an output is missing");
}

/** Inputs that share the extent of another, and a reshape by axes. */
function shared(): Fusion {
  const f = new Fusion();
  const x = f.input([null, null]);
  const w = f.input([x.axis(1), x.extents[0] ?? 1]);
  f.output(matmul(x, w));
  f.output(reshape(matmul(w, x), [x.axis(1), x.axis(1)]));
  f.output(reshape(f.input([reshape(x, [-1]).extents[0] ?? 1]), [x.extents[0] ?? 1, x.axis(1)]));
  return f;
}

const cases: readonly (readonly [string, () => Fusion, number, ReadonlyMap<string, number>])[] = [
  ["slices and selects", firstRows, 1, new Map(Object.entries({ i0: 5, i3: 3 }))],
  ["slices of no rows", firstRows, 1, new Map(Object.entries({ i0: 5, i3: 0 }))],
  ["slices on devices", sharded, 2, new Map(Object.entries({ i0: 5, i3: 3 }))],
  ["inputs and reshapes", shared, 1, new Map(Object.entries({ i0: 4, i2: 3 }))],
];

it.each(cases)("%s compute what the oracle does", async (_, build, devices, sizes) => {
  await expectOracle(build(), { devices, sizes });
});

it.each(cases)("%s print and are read back", (_, build) => {
  const dump = print(lower(build(), { rank: 0 }));
  expect(print(parse(dump))).toBe(dump);
});

it("slices print their bounds, and give their outputs the difference", () => {
  const dump = print(lower(firstRows(), { rank: 0 }));
  expect(dump).toContain("{ {0, i3, 1} {0, 6, 1} }");
  expect(dump).toContain("{ {i3, i0, 1} {1, 4, 1} }");
  expect(dump).toContain("{( i0 - i3 )}");
});

it("an input with another's extent takes no number of its own", () => {
  const f = shared();
  expect(f.inputs.map(String)).toEqual([
    "T0_g_float[iS0{i0}, iS1{i2}]",
    "T1_g_float[iS2{i2}, iS3{i0}]",
    expect.stringContaining("{( i0 * i2 )}"),
  ]);
});

it("a host program's slice takes computed bounds", () => {
  const h = new HostProgramBuilder();
  const x = h.input([null]);
  h.output(h.slice(x, [1], [h.scalars.sub(x.extents[0] ?? 0, 1)]));
  const dump = print(h.build());
  expect(dump).toContain("{ {1, ( i0 - 1 ), 1} }");
  expect(print(parse(dump))).toBe(dump);
});

describe("refuse", () => {
  const other = new Fusion().input([null, 4]);
  const calls: readonly (readonly [string, (f: Fusion, x: TensorView) => unknown, DiagnosticCode, string])[] = [
    ["an axis of another Fusion", (f) => f.input([other.axis(0)]), "foreign-tensor", 'input([i0], "float")'],
    [
      "a name that no input has",
      (_, x) => slice(x, [0], [{ kind: "symbol", name: "i9" }]),
      "bad-argument",
      "slice(T0, [0], [i9])",
    ],
    [
      "a name of host programs",
      (_, x) => select(x, 0, { kind: "named", name: "rank" }),
      "bad-argument",
      "select(T0, 0, rank)",
    ],
    ["an index that is the extent", (_, x) => select(x, 0, x.axis(0)), "index-out-of-range", "select(T0, 0, i0)"],
    ["no indices", (_, x) => slice(x, [x.axis(0)], [x.axis(0)]), "index-out-of-range", "slice(T0, [i0], [i0])"],
    ["an object", (_, x) => reshape(x, [{} as never]), "bad-argument", "reshape(T0, [an object])"],
    ["a symbolic split", (_, x) => x.outerSplit(0, x.axis(0) as never), "bad-argument", "T0.outerSplit(0, i0)"],
  ];
  it.each(calls)("%s", (_, call, code, text) => {
    const f = new Fusion();
    const x = f.input([null]);
    expect(diagnosticOf(() => call(f, x))).toMatchObject({ code, place: { kind: "call", text } });
  });

  it("sizes outside the axis, and sizes that contradict", async () => {
    const run = (i3: number): Promise<void> =>
      expectOracle(firstRows(), { devices: 1, sizes: new Map(Object.entries({ i0: 5, i3 })) });
    await expect(run(6)).rejects.toThrow(
      "error[bad-extent]: axis iS9{( i0 - i3 )} does not have a whole number of elements",
    );
    const { inputs, tensors } = shared().data();
    const own = tensors.filter(({ id }) => inputs.includes(id));
    const sized = (count: number): unknown => sizesFromShapes(own, [[4, 3], [3, 4], [count]]);
    expect(sized(12)).toEqual(new Map(Object.entries({ i0: 4, i2: 3 })));
    expect(diagnosticOf(() => sized(11))).toMatchObject({
      code: "size-mismatch",
      expected: "12, the value of ( i0 * i2 )",
    });
  });
});
