/** Every mistake is a diagnostic at its call: code, place, and what was found. */
import { describe, expect, it } from "vitest";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { gradients } from "../../src/ir/api/gradients.ts";
import type { IterDomain } from "../../src/ir/api/iter-domain.ts";
import {
  add,
  amax,
  broadcast,
  cast,
  dropout,
  linear,
  matmul,
  neg,
  permute,
  prod,
  reshape,
  select,
  set,
  slice,
  squeeze,
  sum,
} from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import type { DiagnosticCode } from "../../src/diagnostics/codes.ts";
import { diagnosticOf } from "./expect-diagnostic.ts";

type Case = readonly [
  what: string,
  call: (f: Fusion) => unknown,
  code: DiagnosticCode,
  place: string,
  found: string | RegExp,
];

const mesh2 = DeviceMesh.range(2);

/** Calls as JavaScript makes them, past the type checker. */
function untyped(call: (...args: never[]) => unknown, ...args: readonly unknown[]): unknown {
  return Reflect.apply(call, undefined, args);
}
function untypedMethod(target: TensorView | IterDomain | Fusion, method: string, ...args: readonly unknown[]): unknown {
  const value: unknown = Reflect.get(target, method);
  if (typeof value !== "function") throw new Error(`no method ${method}`);
  return Reflect.apply(value, target, args);
}

const cases: readonly Case[] = [
  // extents and dtypes of inputs
  ["a negative extent", (f) => f.input([-4]), "bad-extent", 'input([-4], "float")', "-4"],
  ["a fractional extent", (f) => f.input([1.5]), "bad-extent", 'input([1.5], "float")', "1.5"],
  ["a NaN extent", (f) => f.input([NaN]), "bad-extent", 'input([NaN], "float")', "NaN"],
  ["an extent beyond 2^53", (f) => f.input([1e99]), "bad-extent", 'input([1e+99], "float")', "1e+99"],
  ["an infinite extent", (f) => f.input([Infinity]), "bad-extent", 'input([Infinity], "float")', "Infinity"],
  [
    "an undefined extent",
    (f) => untypedMethod(f, "input", [undefined]),
    "bad-extent",
    'input([undefined], "float")',
    "undefined",
  ],
  [
    "a dtype that does not exist",
    (f) => untypedMethod(f, "input", [4], "fp8"),
    "bad-argument",
    'input([4], "fp8")',
    "fp8",
  ],
  [
    "a cast to no dtype",
    (f) => untyped(cast, f.input([4]), "toString"),
    "bad-argument",
    'cast(T0, "toString")',
    "toString",
  ],
  // axes
  ["axis(rank)", (f) => f.input([4, 4]).axis(2), "axis-out-of-range", "T0.axis(2)", "axis 2 of a tensor with 2 axes"],
  [
    "axis(-rank-1)",
    (f) => f.input([4]).axis(-2),
    "axis-out-of-range",
    "T0.axis(-2)",
    "axis -2 of a tensor with 1 axis",
  ],
  ["a fractional axis", (f) => f.input([4]).axis(0.5), "axis-out-of-range", "T0.axis(0.5)", /0.5/],
  ["an axis of a scalar", (f) => f.input([]).axis(0), "axis-out-of-range", "T0.axis(0)", /0 axes/],
  ["an axis of a sum", (f) => sum(f.input([4, 4]), [2]), "axis-out-of-range", "sum(T0, [2])", /axis 2/],
  [
    "an axis that was reduced",
    (f) => amax(sum(f.input([4, 4]), [0]), [1]),
    "axis-out-of-range",
    "amax(T1, [1])",
    /axis 1 of a tensor with 1 axis/,
  ],
  ["an axis named twice", (f) => prod(f.input([4, 4]), [1, -1]), "axis-repeated", "prod(T0, [1, -1])", "[1, -1]"],
  ["no axes", (f) => sum(f.input([4]), []), "bad-argument", "sum(T0, [])", "no axes"],
  // shapes
  [
    "contracted axes",
    (f) => matmul(f.input([4, 5]), f.input([6, 7])),
    "shape-mismatch",
    "matmul(T0, T1)",
    "T0[4, 5] and T1[6, 7]",
  ],
  [
    "K is not broadcast",
    (f) => matmul(f.input([4, 1]), f.input([6, 7])),
    "shape-mismatch",
    "matmul(T0, T1)",
    /T0\[4, 1\]/,
  ],
  ["batch axes", (f) => matmul(f.input([2, 4, 5]), f.input([3, 5, 6])), "shape-mismatch", "matmul(T0, T1)", /and/],
  ["matmul of a scalar", (f) => matmul(f.input([]), f.input([5])), "shape-mismatch", "matmul(T0, T1)", "T0[]"],
  [
    "linear's K",
    (f) => linear(f.input([4, 5]), f.input([5, 6])),
    "shape-mismatch",
    "linear(T0, T1)",
    "T0[4, 5] and T1[5, 6]",
  ],
  [
    "linear's weight",
    (f) => linear(f.input([4, 5]), f.input([2, 6, 5])),
    "shape-mismatch",
    "linear(T0, T1)",
    "T1[2, 6, 5]",
  ],
  [
    "linear's bias",
    (f) => linear(f.input([4, 5]), f.input([6, 5]), f.input([5])),
    "shape-mismatch",
    "linear(T0, T1, T2)",
    /T2\[5\]/,
  ],
  [
    "linear's bias without an axis",
    (f) => linear(f.input([4, 5]), f.input([6, 5]), f.input([])),
    "shape-mismatch",
    "linear(T0, T1, T2)",
    /T2\[\]/,
  ],
  ["ranks of a sum", (f) => add(f.input([4]), f.input([1, 4])), "shape-mismatch", "add(T0, T1)", "T0[4] and T1[1, 4]"],
  ["extents of a sum", (f) => add(f.input([4]), f.input([3])), "shape-mismatch", "add(T0, T1)", "T0[4] and T1[3]"],
  ["squeeze of an extent", (f) => squeeze(f.input([4]), [0]), "shape-mismatch", "squeeze(T0, [0])", "extent 4"],
  ["squeeze of a symbol", (f) => squeeze(f.input([null]), [0]), "shape-mismatch", "squeeze(T0, [0])", "extent i0"],
  [
    "elements of reshape",
    (f) => reshape(f.input([4, 3]), [5, 2]),
    "shape-mismatch",
    "reshape(T0, [5, 2])",
    /12 elements.*10/,
  ],
  [
    "elements of reshape with -1",
    (f) => reshape(f.input([4, 3]), [5, -1]),
    "shape-mismatch",
    "reshape(T0, [5, -1])",
    /12 elements.*multiple of 5/,
  ],
  [
    "two -1 in reshape",
    (f) => reshape(f.input([4, 3]), [-1, -1]),
    "bad-argument",
    "reshape(T0, [-1, -1])",
    "2 times -1",
  ],
  ["a bad extent in reshape", (f) => reshape(f.input([4, 3]), [0, -1]), "bad-extent", "reshape(T0, [0, -1])", "0"],
  [
    "flags of broadcast",
    (f) => broadcast(f.input([4]), [true]),
    "bad-argument",
    "broadcast(T0, [true])",
    "0 false flags for T0[4]",
  ],
  ["order of permute", (f) => permute(f.input([4, 4]), [1]), "bad-argument", "permute(T0, [1])", "1 of 2 axes"],
  ["an order that repeats", (f) => permute(f.input([4, 4]), [0, 0]), "axis-repeated", "permute(T0, [0, 0])", "[0, 0]"],
  [
    "an order out of range",
    (f) => permute(f.input([4, 4]), [0, 2]),
    "axis-out-of-range",
    "permute(T0, [0, 2])",
    /axis 2/,
  ],
  [
    "a slice past the end",
    (f) => slice(f.input([4]), [0], [5]),
    "index-out-of-range",
    "slice(T0, [0], [5])",
    "[0, 5) of extent 4",
  ],
  [
    "an empty slice",
    (f) => slice(f.input([4]), [2], [2]),
    "index-out-of-range",
    "slice(T0, [2], [2])",
    "[2, 2) of extent 4",
  ],
  [
    "a negative slice",
    (f) => slice(f.input([null]), [-1], [2]),
    "index-out-of-range",
    "slice(T0, [-1], [2])",
    "[-1, 2) of extent i0",
  ],
  [
    "a slice without all axes",
    (f) => slice(f.input([4, 4]), [0], [2]),
    "bad-argument",
    "slice(T0, [0], [2])",
    /1 starts/,
  ],
  [
    "an index past the end",
    (f) => select(f.input([4]), 0, 4),
    "index-out-of-range",
    "select(T0, 0, 4)",
    "index 4 of extent 4",
  ],
  [
    "an index before the start",
    (f) => select(f.input([4]), 0, -5),
    "index-out-of-range",
    "select(T0, 0, -5)",
    "index -5 of extent 4",
  ],
  ["a fractional index", (f) => select(f.input([null]), 0, 0.5), "index-out-of-range", "select(T0, 0, 0.5)", /0.5/],
  ["an axis of select", (f) => select(f.input([4]), 1, 0), "axis-out-of-range", "select(T0, 1, 0)", /axis 1/],
  // dtypes
  [
    "matmul of two dtypes",
    (f) => matmul(f.input([4, 4], "half"), f.input([4, 4])),
    "dtype-mismatch",
    "matmul(T0, T1)",
    "T0 half, T1 float",
  ],
  [
    "linear of two dtypes",
    (f) => linear(f.input([4, 4]), f.input([4, 4]), f.input([4], "int")),
    "dtype-mismatch",
    "linear(T0, T1, T2)",
    "T0 float, T1 float, T2 int",
  ],
  [
    "matmul of bool",
    (f) => matmul(f.input([4, 4], "bool"), f.input([4, 4], "bool")),
    "dtype-mismatch",
    "matmul(T0, T1)",
    "bool",
  ],
  [
    "arithmetic on bool",
    (f) => add(f.input([4], "bool"), f.input([4], "bool")),
    "dtype-mismatch",
    "add(T0, T1)",
    "bool",
  ],
  ["neg of bool", (f) => neg(f.input([4], "bool")), "dtype-mismatch", "neg(T0)", "bool"],
  ["sum of bool", (f) => sum(f.input([4], "bool"), [0]), "dtype-mismatch", "sum(T0, [0])", "bool"],
  // tensors of other fusions, and values that are not tensors
  [
    "a foreign operand",
    (f) => matmul(f.input([4, 4]), new Fusion().input([4, 4])),
    "foreign-tensor",
    "matmul(T0, a tensor of another program)",
    /a tensor of another Fusion/,
  ],
  [
    "a foreign operand with a name",
    (f) => matmul(f.input([4, 4]), new Fusion().input([4, 4]).named("bias")),
    "foreign-tensor",
    "matmul(T0, bias of another program)",
    /bias of another Fusion/,
  ],
  [
    "a foreign operand to cast",
    (f) => add(f.input([4]), new Fusion().input([4], "half")),
    "foreign-tensor",
    "add(T0, a tensor of another program)",
    /a tensor of another/,
  ],
  [
    "a foreign output",
    (f) => f.output(new Fusion().input([4])),
    "foreign-tensor",
    "output(a tensor of another program)",
    /a tensor of another/,
  ],
  [
    "a foreign output with a name, and an input of that number",
    (f) => {
      f.output(f.input([4]).named("x"), { alias: new Fusion().input([4]).named("old") });
    },
    "foreign-tensor",
    "output(T0, old of another program)",
    "old of another Fusion",
  ],
  [
    "a foreign seed",
    (f) => dropout(f.input([4]), 0.5, new Fusion().input([], "int64").named("seed")),
    "foreign-tensor",
    "dropout(T0, 0.5, seed of another program)",
    "seed of another Fusion",
  ],
  [
    "a gradient of a foreign tensor",
    (f) => gradients(f, { of: [sum(f.input([4]), [0])], wrt: [new Fusion().input([4]).named("w")] }),
    "foreign-tensor",
    "gradients({ of: [T1], wrt: [w of another program] })",
    "w of another Fusion",
  ],
  [
    "an output twice",
    (f) => {
      const y = set(f.input([4]));
      f.output(y);
      f.output(y);
    },
    "bad-argument",
    "output(T1)",
    "the same tensor twice",
  ],
  ["no tensor", (f) => untyped(matmul, f.input([4, 4]), undefined), "bad-argument", "matmul(...)", "undefined"],
  ["a number", () => untyped(set, 3), "bad-argument", "set(...)", "number"],
  ["an output that is no tensor", (f) => untypedMethod(f, "output", null), "bad-argument", "output(...)", "null"],
  // transforms
  [
    "the same DID type twice",
    (f) => {
      const x = f.input([2, 2]);
      x.axis(0).parallelize("DIDx");
      x.axis(1).parallelize("DIDx");
    },
    "did-repeated",
    'T0.axis(1).parallelize("DIDx")',
    /ideviceIdx.x0\{2\}, ideviceIdx.x1\{2\}/,
  ],
  [
    "Stream twice",
    (f) => {
      const x = f.input([2, 2]);
      x.axis(-1).parallelize("Stream");
      x.axis(0).parallelize("Stream");
    },
    "stream-repeated",
    'T0.axis(0).parallelize("Stream")',
    /istreamIdx0/,
  ],
  [
    "Stream on a kept and a reduced axis",
    (f) => {
      const x = sum(f.input([2, 2]), [0]);
      x.axis(0).parallelize("Stream");
      x.axis(1).parallelize("Stream");
    },
    "stream-repeated",
    'T1.axis(1).parallelize("Stream")',
    /rstreamIdx/,
  ],
  [
    "a parallel type that does not exist",
    (f) => untypedMethod(f.input([2]).axis(0), "parallelize", "TIDx"),
    "bad-argument",
    'T0.axis(0).parallelize("TIDx")',
    "TIDx",
  ],
  [
    "an axis that was split",
    (f) => {
      const x = f.input([4]);
      const axis = x.axis(0);
      x.split(0, 2);
      axis.parallelize("Stream");
    },
    "bad-argument",
    'iS0{4}.parallelize("Stream")',
    "iS0{4}",
  ],
  [
    "a size against the mesh",
    (f) => f.input([4]).setDeviceMesh(mesh2).axis(0).parallelize("DIDx"),
    "size-contradicts-mesh",
    'T0.axis(0).parallelize("DIDx")',
    "extent 4, 2 devices along DIDx of a mesh of shape [DIDx 2]",
  ],
  [
    "a mesh against the size",
    (f) => {
      const x = f.input([4]);
      x.axis(0).parallelize("DIDx");
      x.setDeviceMesh(mesh2);
    },
    "size-contradicts-mesh",
    "T0.setDeviceMesh(DeviceMesh{0 1})",
    "extent 4, 2 devices along DIDx of a mesh of shape [DIDx 2]",
  ],
  [
    "a size of a split against the mesh",
    (f) => {
      const x = f.input([12]).setDeviceMesh(mesh2);
      x.split(0, 3, { inner: false });
      x.axis(0).parallelize("DIDx");
    },
    "size-contradicts-mesh",
    'T0.axis(0).parallelize("DIDx")',
    /extent 3/,
  ],
  [
    "a DID type that the mesh lacks",
    (f) => f.input([2]).setDeviceMesh(mesh2).axis(0).parallelize("DIDy"),
    "mesh-axis-missing",
    'T0.axis(0).parallelize("DIDy")',
    /DeviceMesh\{0 1\} with 1 dimension$/,
  ],
  [
    "a mesh that lacks a DID type",
    (f) => {
      const x = f.input([null]);
      x.axis(0).parallelize("DIDz");
      x.setDeviceMesh(mesh2);
    },
    "mesh-axis-missing",
    "T0.setDeviceMesh(DeviceMesh{0 1})",
    /1 dimension$/,
  ],
  [
    "no mesh",
    (f) => untypedMethod(f.input([2]), "setDeviceMesh", [0, 1]),
    "bad-argument",
    "T0.setDeviceMesh(0,1)",
    "object",
  ],
  [
    "a duplicate device",
    () => new DeviceMesh([0, 1, 0]),
    "mesh-duplicate-device",
    "new DeviceMesh([0,1,0])",
    "(0 1 0)",
  ],
  ["a split by 0", (f) => f.input([10]).split(0, 0), "bad-extent", "T0.split(0, 0)", "0"],
  ["a split of axis 3", (f) => f.input([10]).split(3, 2), "axis-out-of-range", "T0.split(3, 2)", /axis 3/],
  [
    "a split of a parallel axis",
    (f) => {
      const x = f.input([10]);
      x.axis(0).parallelize("Stream");
      x.split(0, 2);
    },
    "bad-argument",
    "T0.split(0, 2)",
    "istreamIdx0{10}",
  ],
  [
    "a merge of a parallel axis",
    (f) => {
      const x = f.input([10, 2]);
      x.axis(1).parallelize("DIDx");
      x.merge(0);
    },
    "bad-argument",
    "T0.merge(0)",
    "ideviceIdx.x1{2}",
  ],
  [
    "a merge of the last axis",
    (f) => f.input([2, 3]).merge(-1),
    "axis-out-of-range",
    "T0.merge(-1)",
    "axis 1, the last of 2",
  ],
  [
    "a merge of kept and reduced",
    (f) => sum(f.input([2, 3]), [1]).merge(0),
    "bad-argument",
    "T1.merge(0)",
    "iS2{2} and rS3{3}",
  ],
  [
    "an allocation without an axis",
    (f) => f.input([2, 3]).setAllocationDomain([1]),
    "bad-argument",
    "T0.setAllocationDomain([1])",
    /1 of 2 axes/,
  ],
  [
    "an allocation with an axis twice",
    (f) => f.input([2, 3]).setAllocationDomain([1, -1]),
    "axis-repeated",
    "T0.setAllocationDomain([1, -1])",
    /number 1/,
  ],
  [
    "an allocation of another tensor's axis",
    (f) => f.input([2]).setAllocationDomain([f.input([2]).axis(0)]),
    "bad-argument",
    "T0.setAllocationDomain([iS1{2}])",
    /1 of 1/,
  ],
  [
    "a memory type that does not exist",
    (f) => untypedMethod(f.input([2]), "setMemoryType", "shared"),
    "bad-argument",
    'T0.setMemoryType("shared")',
    "shared",
  ],
];

describe("mistakes in a fusion", () => {
  it.each(cases)("%s", (_, call, code, place, found) => {
    const diagnostic = diagnosticOf(() => call(new Fusion()));
    expect(diagnostic.code).toBe(code);
    expect(diagnostic.place).toEqual({ kind: "call", text: place });
    expect(diagnostic.found).toMatch(found);
    expect(diagnostic.expected).toBeTruthy();
    expect(diagnostic.help).toBeTruthy();
  });

  it("leave the fusion as it was", () => {
    const f = new Fusion();
    const a = f.input([4, 5]);
    const b = f.input([6, 7], "half");
    const before = f.data();
    expect(() => matmul(a, b)).toThrow();
    expect(() => add(a, b)).toThrow();
    expect(() => a.axis(0).parallelize("DIDx").parallelize("Serial")).not.toThrow();
    expect(() => a.split(0, 0)).toThrow();
    expect(f.data()).toEqual(before);
  });
});

it("an output twice is named", () => {
  const f = new Fusion();
  const y = set(f.input([4])).named("y");
  f.output(y);
  expect(() => {
    f.output(y);
  }).toThrow("y is already an output\n  at: output(y)");
});
