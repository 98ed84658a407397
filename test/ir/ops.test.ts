/** The outputs of ops: axes, dtypes and the ops in the data. */
import { describe, expect, it } from "vitest";
import { Fusion } from "../../src/ir/api/fusion.ts";
import {
  abs,
  add,
  amax,
  amin,
  broadcast,
  cast,
  div,
  exp,
  gelu,
  linear,
  matmul,
  mul,
  neg,
  permute,
  prod,
  relu,
  reshape,
  select,
  set,
  slice,
  squeeze,
  sub,
  sum,
} from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import type { Op } from "../../src/ir/ops/op.ts";
import { promoteDTypes } from "../../src/ir/ops/dtype-rules.ts";
import { printScalar } from "../../src/ir/scalar/scalar.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { at } from "../../src/support/invariant.ts";

const lastOp = (f: Fusion): Op => at(f.data().ops, f.data().ops.length - 1);

/** `i2 r4 b1`: iteration letter and extent of each logical axis. */
function axes(tv: TensorView): string {
  return tv
    .data()
    .domain.logical.map((axis) => `${axis.iterType.charAt(0)}:${printScalar(axis.extent)}`)
    .join(" ");
}

describe("pointwise ops", () => {
  it("append their node and keep the shape", () => {
    const f = new Fusion();
    const x = f.input([null, 3]);
    const unary = [
      [neg, "neg"],
      [abs, "abs"],
      [relu, "relu"],
      [gelu, "gelu"],
      [exp, "exp"],
    ] as const;
    for (const [call, op] of unary) {
      const y = call(x);
      expect(lastOp(f)).toEqual({ kind: "Unary", op, inputs: [0], output: y.id });
      expect(axes(y)).toBe("i:i0 i:3");
    }
    const binary = [
      [add, "add"],
      [sub, "sub"],
      [mul, "mul"],
      [div, "div"],
    ] as const;
    for (const [call, op] of binary) {
      const y = call(x, x);
      expect(lastOp(f)).toEqual({ kind: "Binary", op, inputs: [0, 0], output: y.id });
      expect(axes(y)).toBe("i:i0 i:3");
    }
    expect(axes(set(x))).toBe("i:i0 i:3");
    expect(lastOp(f)).toMatchObject({ kind: "Set", inputs: [0] });
    expect(cast(x, "half").dtype).toBe("half");
    expect(lastOp(f)).toMatchObject({ kind: "Cast", to: "half", inputs: [0] });
  });

  it("join axes: a constant wins over a symbol, the other extent over 1", () => {
    const f = new Fusion();
    const a = f.input([null, null, 1, 5, 1]);
    const b = f.input([4, null, 6, 1, 1]);
    expect(axes(add(a, b))).toBe("i:4 i:i2 i:6 i:5 i:1");
    expect(axes(add(b, a))).toBe("i:4 i:i7 i:6 i:5 i:1");
    const column = broadcast(f.input([4]), [false, true]);
    const row = broadcast(f.input([7]), [true, false]);
    expect(axes(mul(column, row))).toBe("i:4 i:7");
    expect(axes(mul(column, column))).toBe("i:4 b:1");
    const one = broadcast(f.input([]), [true, true]);
    expect(axes(add(one, f.input([1, null])))).toBe(`i:1 i:i14`);
    expect(axes(add(one, one))).toBe("b:1 b:1");
  });
});

describe("dtype promotion", () => {
  const order: readonly DType[] = ["bool", "int", "int64", "half", "float", "double"];
  it("takes the wider dtype, in both orders", () => {
    for (const [i, a] of order.entries()) {
      for (const [j, b] of order.entries()) expect(promoteDTypes(a, b)).toBe(at(order, Math.max(i, j)));
    }
  });
  it("treats bfloat16 as half, but joins the two in float", () => {
    expect(promoteDTypes("bfloat16", "int64")).toBe("bfloat16");
    expect(promoteDTypes("bfloat16", "float")).toBe("float");
    expect(promoteDTypes("bfloat16", "bfloat16")).toBe("bfloat16");
    expect(promoteDTypes("half", "bfloat16")).toBe("float");
    expect(promoteDTypes("bfloat16", "half")).toBe("float");
  });
  it("casts only the operand that needs it", () => {
    const f = new Fusion();
    const y = mul(f.input([2], "int"), f.input([2], "double"));
    expect(y.dtype).toBe("double");
    expect(f.data().ops).toEqual([
      { kind: "Cast", to: "double", inputs: [0], output: 2 },
      { kind: "Binary", op: "mul", inputs: [2, 1], output: 3 },
    ]);
  });
  it("casts bool beside a number, and integers before exp and gelu", () => {
    const f = new Fusion();
    expect(add(f.input([2], "bool"), f.input([2], "int")).dtype).toBe("int");
    expect(exp(f.input([2], "int64")).dtype).toBe("float");
    expect(gelu(f.input([2], "int")).dtype).toBe("float");
    expect(gelu(f.input([2], "half")).dtype).toBe("half");
    expect(f.data().ops.filter((op) => op.kind === "Cast")).toHaveLength(3);
  });
});

describe("reductions", () => {
  it("keep the reduced axes in place and the dtype", () => {
    const f = new Fusion();
    const x = f.input([2, null, 4], "int");
    const calls = [
      [sum, "sum"],
      [prod, "prod"],
      [amax, "amax"],
      [amin, "amin"],
    ] as const;
    for (const [call, op] of calls) {
      const y = call(x, [-1, 0]);
      expect(lastOp(f)).toMatchObject({ kind: "Reduction", op, axes: [2, 0] });
      expect(axes(y)).toBe("r:2 i:i2 r:4");
      expect([y.rank, y.nDims, y.dtype]).toEqual([1, 3, "int"]);
    }
    expect(axes(sum(sum(x, [0]), [1]))).toBe("i:i2 r:4");
    expect(sum(x, [0, 1, 2]).rank).toBe(0);
    expect(amax(f.input([3], "bool"), [0]).dtype).toBe("bool");
  });

  it("reduce an axis of extent 1 like any other", () => {
    const f = new Fusion();
    expect(axes(sum(f.input([1, 4]), [0]))).toBe("r:1 i:4");
    expect(lastOp(f).kind).toBe("Reduction");
  });
});

describe("rearranging ops", () => {
  const f = new Fusion();
  const x = f.input([2, 3, 4]);
  it("broadcast and squeeze are inverse", () => {
    const wide = broadcast(x, [false, true, false, false, true]);
    expect(axes(wide)).toBe("i:2 b:1 i:3 i:4 b:1");
    expect(axes(squeeze(wide, [1, -1]))).toBe("i:2 i:3 i:4");
    expect(lastOp(f)).toMatchObject({ kind: "Squeeze", axes: [1, 4] });
    expect(axes(squeeze(f.input([1, 5]), [0]))).toBe("i:5");
  });
  it("permute", () => {
    expect(axes(permute(x, [-1, 0, 1]))).toBe("i:4 i:2 i:3");
    expect(lastOp(f)).toMatchObject({ kind: "Permute", order: [2, 0, 1] });
  });
  it("reshape, with -1 and with symbolic extents", () => {
    expect(axes(reshape(x, [6, 4]))).toBe("i:6 i:4");
    expect(lastOp(f)).toEqual({ kind: "Reshape", inputs: [x.id], output: f.data().tensors.length - 1 });
    expect(axes(reshape(x, [-1, 8]))).toBe("i:3 i:8");
    expect(axes(reshape(x, [-1]))).toBe("i:24");
    const y = f.input([null, null]);
    const [rows, columns] = y.extents;
    if (rows === undefined || columns === undefined) throw new Error("two extents");
    const [m, n] = [printScalar(rows), printScalar(columns)];
    expect(axes(reshape(y, [2, -1]))).toBe(`i:2 i:( ( ${m} * ${n} ) / 2 )`);
    expect(axes(reshape(y, [1, rows, columns]))).toBe(`i:1 i:${m} i:${n}`);
    expect(reshape(f.input([]), [1, 1]).rank).toBe(2);
  });
  it("slice and select", () => {
    expect(axes(slice(x, [0, 1, 2], [2, 3, 3]))).toBe("i:2 i:2 i:1");
    expect(axes(select(x, 1, -1))).toBe("i:2 i:4");
    expect(lastOp(f)).toMatchObject({ kind: "Select", axis: 1, index: { kind: "constant", value: 2 } });
    const y = select(f.input([null, 7]), -2, -1);
    const op = lastOp(f);
    expect(axes(y)).toBe("i:7");
    expect(op.kind === "Select" ? printScalar(op.index) : op.kind).toMatch(/^\( i\d+ \+ -1 \)$/);
  });
});

describe("contractions", () => {
  const f = new Fusion();
  const input = (...extents: number[]): TensorView => f.input(extents);
  it.each([
    [[4, 5], [5, 6], "i:4 i:6 r:5"],
    [[5], [5], "r:5"],
    [[4, 5], [5], "i:4 r:5"],
    [[5], [5, 6], "i:6 r:5"],
    [[5], [3, 5, 6], "i:3 i:6 r:5"],
    [[3, 4, 5], [5], "i:3 i:4 r:5"],
    [[3, 4, 5], [5, 6], "i:3 i:4 i:6 r:5"],
    [[4, 5], [3, 5, 6], "i:3 i:4 i:6 r:5"],
    [[2, 1, 4, 5], [3, 5, 6], "i:2 i:3 i:4 i:6 r:5"],
    [[3, 4, 5], [2, 1, 5, 6], "i:2 i:3 i:4 i:6 r:5"],
  ])("matmul %j x %j", (a, b, expected) => {
    expect(axes(matmul(input(...a), input(...b)))).toBe(expected);
  });
  it.each([
    [[4, 5], [6, 5], [6], "i:4 i:6 r:5"],
    [[5], [6, 5], null, "i:6 r:5"],
    [[2, 3, 5], [6, 5], [6], "i:2 i:3 i:6 r:5"],
    [[4, 5], [5], [], "i:4 r:5"],
  ])("linear %j x %j + %j", (x, w, bias, expected) => {
    expect(axes(linear(input(...x), input(...w), bias === null ? undefined : input(...bias)))).toBe(expected);
    expect(lastOp(f).inputs).toHaveLength(bias === null ? 2 : 3);
  });
  it("keep broadcast batch axes broadcast, and integers integer", () => {
    const a = broadcast(f.input([4, 5], "int"), [true, false, false]);
    const b = broadcast(f.input([5, 6], "int"), [true, false, false]);
    const c = matmul(a, b);
    expect(axes(c)).toBe("b:1 i:4 i:6 r:5");
    expect(c.dtype).toBe("int");
  });
});

describe("snapshots", () => {
  it("are the same object until something changes, and never change", () => {
    const f = new Fusion();
    const x = f.input([4, 4]);
    const before = f.data();
    expect(f.data()).toBe(before);
    f.output(set(x));
    const after = f.data();
    expect(after).not.toBe(before);
    expect([before.ops.length, after.ops.length, after.outputs]).toEqual([0, 1, [1]]);
    x.axis(0).parallelize("Stream");
    expect(after.tensors[0]?.domain.loop[0]?.parallelType).toBe("Serial");
    expect(f.data().tensors[0]?.domain.loop[0]?.parallelType).toBe("Stream");
  });
});
