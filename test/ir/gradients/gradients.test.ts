/** The API of gradients: what it returns, what it refuses, and where gradients lie. */
import { describe, expect, it } from "vitest";
import {
  add,
  argmax,
  cast,
  DeviceMesh,
  exp,
  Fusion,
  gradients,
  linear,
  mul,
  round,
  set,
  softmax,
  sum,
  tanh,
  type TensorView,
} from "@braid-compiler/braid";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { randomInputs } from "../../../src/oracle/random-inputs.ts";
import { at } from "../../../src/support/invariant.ts";
import { createRandom } from "../../../src/support/random.ts";
import { collectivesOf } from "../../support/collectives-of.ts";
import { propagated } from "../../support/propagated.ts";
import { diagnosticOf } from "../expect-diagnostic.ts";

const loss = (x: TensorView): TensorView =>
  sum(
    x,
    Array.from({ length: x.rank }, (_, axis) => axis),
  );

describe("gradients", () => {
  it("has the shape and dtype of each tensor, and null for those that nothing depends on", () => {
    const f = new Fusion();
    const [x, w, other] = [f.input([4, 3], "bfloat16"), f.input([5, 3], "bfloat16"), f.input([2])];
    const found = gradients(f, { of: [loss(linear(x, w))], wrt: [x, other, w] });
    expect(found.map((each) => each?.dtype)).toEqual(["bfloat16", undefined, "bfloat16"]);
    expect(found.map((each) => each?.rank)).toEqual([2, undefined, 2]);
    expect(found[1]).toBeNull();
  });

  it("is another tensor for each, so that all can be outputs", () => {
    const f = new Fusion();
    const [a, b] = [f.input([4]), f.input([4])];
    const y = add(a, b);
    const g = f.input([4]);
    const found = gradients(f, { of: [y], cotangents: [g], wrt: [a, b, y] });
    for (const each of found) if (each !== null) f.output(each);
    expect(new Set([g, ...found].map((each) => each?.id)).size).toBe(4);
  });

  it("appends no op for operands whose gradients are not asked for", () => {
    const f = new Fusion();
    const [x, w] = [f.input([4, 3]), f.input([5, 3])];
    const y = linear(x, w);
    const before = f.data().ops.length;
    gradients(f, { of: [y], cotangents: [f.input([4, 5])], wrt: [x] });
    expect(
      f
        .data()
        .ops.slice(before)
        .map(({ kind }) => kind),
    ).toEqual(["Matmul"]);
  });

  it("has names after those of the tensors, once each", () => {
    const f = new Fusion();
    const [x, w, other] = [f.input([4, 3]).named("x"), f.input([5, 3]).named("w"), f.input([4, 5])];
    const hidden = linear(x, w).named("hidden");
    const request = { of: [mul(hidden, other)], cotangents: [f.input([4, 5])], wrt: [x, w, other] };
    const namesOf = (): readonly (string | null | undefined)[] => gradients(f, request).map((each) => each?.name);
    expect(namesOf()).toEqual(["x.grad", "w.grad", null]);
    expect(f.data().tensors.map(({ origin }) => origin?.name)).toContain("hidden.grad");
    expect(namesOf()).toEqual(["x.grad2", "w.grad2", null]);
    expect(namesOf()).toEqual(["x.grad3", "w.grad3", null]);
    expect(() => other.named("x.grad")).toThrow("already has the name x.grad");
  });

  it("has the name of the tensor that was asked for, of several with one gradient", () => {
    const f = new Fusion();
    const x = f.input([4, 3]).named("x");
    const hidden = add(x, f.input([4, 3])).named("hidden");
    const [g = null] = gradients(f, { of: [exp(hidden)], cotangents: [f.input([4, 3])], wrt: [x] });
    expect(g?.name).toBe("x.grad");
  });

  it("differentiates gradients", () => {
    const f = new Fusion();
    const x = f.input([], "double");
    const [first = null] = gradients(f, { of: [mul(mul(x, x), x)], wrt: [x] });
    const [second = null] = gradients(f, { of: first === null ? [] : [first], wrt: [x] });
    expect(second).not.toBeNull();
  });

  it("knows the line of the call", () => {
    const f = new Fusion();
    const x = f.input([4]);
    const [gradient] = gradients(f, { of: [loss(exp(x))], wrt: [x] });
    expect(gradient?.data().origin?.source?.path).toContain("gradients.test.ts");
  });
});

describe("refused", () => {
  it("a cotangent of another shape or dtype, and none for a tensor with axes", () => {
    const f = new Fusion();
    const x = f.input([4, 3]);
    const y = exp(x);
    const cases = [undefined, [f.input([3, 4])], [f.input([4])], [f.input([4, 3], "double")], []];
    const before = f.data();
    const codes = cases.map(
      (cotangents) =>
        diagnosticOf(() => gradients(f, { of: [y], wrt: [x], ...(cotangents === undefined ? {} : { cotangents }) }))
          .code,
    );
    expect(codes).toEqual(["shape-mismatch", "shape-mismatch", "shape-mismatch", "dtype-mismatch", "bad-argument"]);
    expect(f.data()).toBe(before);
  });

  it("integers, and a path that only integers connect", () => {
    const f = new Fusion();
    const [x, n] = [f.input([4]), f.input([4], "int")];
    const y = mul(cast(cast(x, "int"), "float"), 2);
    const before = f.data();
    expect(diagnosticOf(() => gradients(f, { of: [loss(y)], wrt: [n] })).code).toBe("not-differentiable");
    // Neither a cotangent nor a sum would help.
    expect(diagnosticOf(() => gradients(f, { of: [n], wrt: [n] })).code).toBe("not-differentiable");
    const cut = diagnosticOf(() => gradients(f, { of: [loss(y)], wrt: [x] }));
    expect(cut).toMatchObject({ code: "not-differentiable", found: "T2 = cast(T0)" });
    expect(f.data().ops.length).toBe(before.ops.length + 2);
  });

  it("a path through argmax, by its name and line, whatever is on the way there", () => {
    const f = new Fusion();
    const x = f.input([4, 3]);
    const index = argmax(softmax(x, 1), 1);
    const y = loss(cast(index, "float"));
    expect(diagnosticOf(() => gradients(f, { of: [y], wrt: [x] }))).toMatchObject({
      code: "not-differentiable",
      message: `no gradient of T${x.id} passes argmax`,
      found: expect.stringMatching(new RegExp(`^T${index.id} = argmax\\(T\\d+\\)$`, "u")) as unknown,
      tensors: [{ tensor: `T${index.id}` }],
    });
  });

  it("a function without a derivative, after one that has one", () => {
    const f = new Fusion();
    const x = f.input([4]);
    const cut = diagnosticOf(() => gradients(f, { of: [loss(round(exp(x)))], wrt: [x] }));
    expect(cut.found).toBe("T2 = round(T1)");
  });

  it("what is no list of tensors", () => {
    const f = new Fusion();
    const x = f.input([]);
    const of = [mul(x, x)];
    // @ts-expect-error -- no list
    expect(diagnosticOf(() => gradients(f, { of, wrt: x }))).toMatchObject({ code: "bad-argument", found: "a tensor" });
    // @ts-expect-error -- not given
    expect(diagnosticOf(() => gradients(f, { of })).found).toBe("undefined");
    const [unused = null] = gradients(f, { of, wrt: [f.input([])] });
    // @ts-expect-error -- null
    expect(diagnosticOf(() => gradients(f, { of, wrt: [unused] })).help).toContain("check for null");
    // @ts-expect-error -- null
    expect(diagnosticOf(() => f.output(unused)).help).toContain("check for null");
  });

  it("partial gradients that no devices share, and those that are no sum over rows", () => {
    const f = new Fusion();
    const [x, y] = [f.input([4]), f.input([4]).setDeviceMesh(DeviceMesh.range(2))];
    const found = [x, y].map((each) =>
      diagnosticOf(() => gradients(f, { of: [loss(exp(each))], wrt: [each], partial: [each] })),
    );
    expect(found.map(({ code }) => code)).toEqual(["bad-argument", "bad-argument"]);
    expect(found.map(({ message }) => message.includes("rows"))).toEqual([false, true]);
  });

  it("tensors of another Fusion", () => {
    const [f, other] = [new Fusion(), new Fusion()];
    const x = other.input([]);
    expect(diagnosticOf(() => gradients(f, { of: [x], wrt: [x] })).code).toBe("foreign-tensor");
  });
});

/** z = x + down(tanh(up(x))), and the gradients of x and both weights. */
function mlp(devices: number, sequenceParallel: boolean): Fusion {
  const f = new Fusion();
  const [x, up, down, dz] = [f.input([8, 6]), f.input([16, 6]), f.input([6, 16]), f.input([8, 6])];
  const mesh = DeviceMesh.range(devices);
  for (const tensor of [x, up, down, dz]) tensor.setDeviceMesh(mesh);
  if (sequenceParallel) for (const tensor of [x, dz]) tensor.outerSplit(0, devices).parallelize("DIDx");
  up.outerSplit(0, devices).parallelize("DIDx");
  down.outerSplit(1, devices).parallelize("DIDx");
  const z = add(x, linear(tanh(linear(x, up)), down));
  const found = gradients(f, { of: [z], cotangents: [dz], wrt: [x, up, down] });
  for (const each of [z, ...found]) if (each !== null) f.output(each);
  return f;
}

describe("placement", () => {
  it("is that of the tensor, without Stream", () => {
    const f = new Fusion();
    const x = f.input([8, 6]).setDeviceMesh(DeviceMesh.range(2));
    x.outerSplit(0, 4).parallelize("Stream");
    x.outerSplit(1, 2).parallelize("DIDx");
    const [g] = gradients(f, { of: [loss(exp(x))], wrt: [x] });
    f.output(at([g], 0) ?? x);
    expect(g === null || g === undefined ? "" : propagated(f)(g)).toBe("4 x2 1 6");
  });

  it("of a gathered tensor is that of the tensor that was gathered", () => {
    const f = new Fusion();
    const mesh = DeviceMesh.range(2);
    const [x, w, dy] = [f.input([8, 6]), f.input([4, 6]), f.input([8, 4])];
    for (const tensor of [x, w, dy]) tensor.setDeviceMesh(mesh);
    x.outerSplit(0, 2).parallelize("DIDx");
    w.outerSplit(0, 2).parallelize("DIDx");
    dy.outerSplit(1, 2).parallelize("DIDx");
    const y = linear(set(x).setDeviceMesh(mesh), w);
    const [dx] = gradients(f, { of: [y], cotangents: [dy], wrt: [x] });
    f.output(at([dx], 0) ?? x);
    expect(collectivesOf(f, 2)).toBe("ReduceScatter 1");
  });

  it("of a partial gradient is an axis in front, whose sum is the gradient, without a collective", () => {
    const parts = (partial: boolean): Fusion => {
      const f = new Fusion();
      const [x, w, b, dy] = [f.input([8, 3]), f.input([5, 3]), f.input([5]), f.input([8, 5])];
      for (const tensor of [x, w, b, dy]) tensor.setDeviceMesh(DeviceMesh.range(2));
      for (const rows of [x, dy]) rows.outerSplit(0, 2).parallelize("DIDx");
      const request = { of: [linear(x, w, b)], cotangents: [dy], wrt: [w, b] };
      const found = gradients(f, partial ? { ...request, partial: [w, b] } : request);
      for (const each of found) if (each !== null) f.output(each);
      return f;
    };
    const [own, whole] = [parts(true), parts(false)];
    expect(own.outputs.map(({ extents }) => extents.length)).toEqual([3, 2]);
    expect(own.outputs.map(propagated(own))).toEqual(["x2 5 3 r4", "x2 r4 5"]);
    expect([own, whole].map((each) => collectivesOf(each, 2))).toEqual(["", "Allreduce 2"]);
    const added = own.outputs.map((each) => sum(each, [0]));
    for (const each of added) own.output(each);
    const inputs = randomInputs(
      [[8, 3], [5, 3], [5], [8, 5]].map((shape) => ({ dtype: "float", shape })),
      createRandom(1),
      "small-integers",
    );
    const [sums, exact] = [own, whole].map((each) => evaluateFusion(each.data(), inputs).outputs.slice(-2));
    expect(sums).toEqual(exact);
  });

  it.each([
    // The shares of y, which the set gathers; the gradients need the whole cotangent, which is there.
    ["a row-cut weight", "x columns, w columns, y rows", "ReduceScatter 1, Allgather 1"],
    // The gradients are those of a device's share.
    ["a column-cut weight", "w rows, y columns", "Allgather 1, Allreduce 1"],
    ["sharded rows", "x rows, y rows", "Allgather 1, Allreduce 1"],
  ])("takes no more than it needs of a cotangent that every device has in full: %s", (_, cuts, expected) => {
    const f = new Fusion();
    const [x, w, dz] = [f.input([8, 4]), f.input([6, 4]), f.input([8, 6])];
    const y = linear(x, w);
    const z = set(y);
    for (const tensor of [x, w, dz, z]) tensor.setDeviceMesh(DeviceMesh.range(2));
    const tensors = { x, w, y };
    for (const cut of cuts.split(", ")) {
      const [name, axis] = cut.split(" ");
      const tensor = name === "x" ? tensors.x : name === "w" ? tensors.w : tensors.y;
      tensor
        .setDeviceMesh(DeviceMesh.range(2))
        .outerSplit(axis === "rows" ? 0 : 1, 2)
        .parallelize("DIDx");
    }
    f.output(z);
    for (const each of gradients(f, { of: [z], cotangents: [dz], wrt: [x, w] })) if (each !== null) f.output(each);
    expect(collectivesOf(f, 2)).toBe(expected);
  });

  it("gives an MLP the collectives of Megatron: an Allreduce each way without sequence parallelism", () => {
    expect(collectivesOf(mlp(2, false), 2)).toBe("Allreduce 2");
  });

  it("and an Allgather and a ReduceScatter each way with it", () => {
    expect(collectivesOf(mlp(2, true), 2)).toBe("Allgather 2, ReduceScatter 2");
  });
});
