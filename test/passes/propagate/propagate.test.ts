/** Which shardings spread where: the examples of nvFuser's PropagateShardings, by what a tensor prints as. */
import { describe, expect, it } from "vitest";
import {
  add,
  type DeviceMesh as Mesh,
  DeviceMesh,
  embedding,
  Fusion,
  gradients,
  linear,
  lower,
  matmul,
  mul,
  permute,
  relu,
  reshape,
  sdpa,
  set,
  sum,
  type TensorView,
} from "@braid-compiler/braid";
import { reshardings } from "../../../src/compile/reshardings.ts";
import { propagated } from "../../support/propagated.ts";

const on = (mesh: Mesh, ...tensors: readonly TensorView[]): void => {
  for (const tensor of tensors) tensor.setDeviceMesh(mesh);
};
const two = DeviceMesh.range(2);
const grid = new DeviceMesh([
  [0, 1, 2],
  [3, 4, 5],
]);

describe("forward", () => {
  it("readers of a further output follow it: no gradient of data-parallel attention is gathered", () => {
    const f = new Fusion();
    const [x, dz] = [f.input([6, 4, 8]), f.input([6, 2, 4, 4])];
    const weights = [0, 1, 2].map(() => f.input([8, 8]));
    on(two, ...f.inputs);
    for (const sequences of [x, dz]) sequences.outerSplit(0, 2).parallelize("DIDx");
    const [q, k, v] = weights.map((weight) => permute(reshape(linear(x, weight), [6, 4, 2, 4]), [0, 2, 1, 3]));
    if (q === undefined || k === undefined || v === undefined) throw new Error("three weights");
    const { output } = sdpa(q, k, v);
    for (const each of gradients(f, { of: [output], cotangents: [dz], wrt: weights })) if (each) f.output(each);
    const sent = lower(f).body.flatMap((each) => (each.kind === "Communication" ? [each.type] : []));
    expect(sent).toEqual(["Allreduce", "Allreduce", "Allreduce"]);
  });

  it.each([3, 120])(
    "weights of %i layers that are only stored in parts are gathered, not what they multiply",
    (count) => {
      const f = new Fusion();
      const [x, ...weights] = [f.input([4096, 8]), ...Array.from({ length: count }, () => f.input([8, 8]))];
      f.output(weights.reduce((y, weight) => relu(linear(y, weight)), x));
      on(two, x, ...weights);
      for (const input of [x, ...weights]) input.outerSplit(0, 2).parallelize("DIDx");
      const moved = lower(f).body.flatMap((each) => (each.kind === "Communication" ? [each.type] : []));
      expect(moved).toEqual(weights.map(() => "Allgather"));
      const bytes = reshardings(f).reduce((sum, each) => sum + (each.bytes ?? 0), 0);
      expect(bytes).toBe(count * 8 * 4 * 4);
    },
  );

  it("a table that is also a weight is gathered once, not the rows that it multiplies", () => {
    const f = new Fusion();
    const [table, tokens] = [f.input([16, 8]), f.input([32], "int64")];
    const logits = linear(embedding(table, tokens), table);
    const loss = sum(logits, [0, 1]);
    f.output(loss);
    on(two, table, tokens);
    for (const input of [table, tokens]) input.outerSplit(0, 2).parallelize("DIDx");
    expect(propagated(f)(logits)).toBe("x2 16 16 r8");
    const sent = lower(f).body.flatMap((each) => (each.kind === "Communication" ? [each.type] : []));
    expect(sent).toEqual(["Allgather", "Allreduce"]);
  });

  it("1: a Megatron MLP needs annotated weights only", () => {
    const f = new Fusion();
    const [x, w1, w2] = [f.input([6, 4]), f.input([16, 4]), f.input([4, 16])];
    const y1 = linear(x, w1);
    const g = relu(y1);
    const y2 = linear(g, w2);
    f.output(y2);
    on(two, x, w1, w2);
    w1.outerSplit(0, 2).parallelize("DIDx");
    w2.outerSplit(1, 2).parallelize("DIDx");
    const text = propagated(f);
    expect(text(y1)).toBe("6 x2 8 r4");
    expect(text(g)).toBe("6 x2 8");
    expect(text(y2)).toBe("6 4 rx2 r8");
    expect(text(x)).toBe("6 4");
  });

  it("2: weights come before activations, and operands with more parallel axes before others", () => {
    const f = new Fusion();
    const [x, w1, w2] = [f.input([6, 4]), f.input([16, 4]), f.input([4, 16])];
    const y1 = linear(x, w1);
    const y2 = linear(y1, w2);
    const z = add(y2, x);
    f.output(z);
    on(two, x, w1, w2);
    x.outerSplit(0, 2).parallelize("DIDx");
    w1.outerSplit(0, 2).parallelize("DIDx");
    w2.outerSplit(1, 2).parallelize("DIDx");
    const text = propagated(f);
    expect(text(y1)).toBe("6 x2 8 r4");
    expect(text(z)).toBe("x2 3 4");
    expect(text(y2)).toBe("x2 3 4 rx2 r8");
  });

  it("3: types of a 2-D mesh spread apart from each other", () => {
    const f = new Fusion();
    const [x, w1, w2] = [f.input([8, 5, 4]), f.input([12, 4]), f.input([4, 12])];
    const y1 = linear(x, w1);
    const y2 = linear(y1, w2);
    f.output(y2);
    on(grid, x, w1, w2);
    x.outerSplit(0, 2).parallelize("DIDy");
    w1.outerSplit(0, 3).parallelize("DIDx");
    w2.outerSplit(1, 3).parallelize("DIDx");
    const text = propagated(f);
    expect(text(y1)).toBe("y2 4 5 x3 4 r4");
    expect(text(y2)).toBe("y2 4 5 4 rx3 r4");
  });

  it("5: Stream needs no mesh", () => {
    const f = new Fusion();
    const [x, w] = [f.input([6, 4]), f.input([4, 6])];
    const y = matmul(x, w);
    f.output(y);
    w.outerSplit(1, 3).parallelize("Stream");
    expect(propagated(f)(y)).toBe("6 s3 2 r4");
  });

  it("7: operands that tie decide in their order, and the other one is resharded", () => {
    const f = new Fusion();
    const [a, b] = [f.input([2, 3, 2]), f.input([2, 3, 2])];
    const c = add(a, b);
    f.output(c);
    on(two, a, b);
    a.axis(0).parallelize("DIDx");
    b.axis(2).parallelize("DIDx");
    expect(propagated(f)(c)).toBe("x2 3 2");
  });

  it("8: nothing is overwritten", () => {
    const f = new Fusion();
    const [a, b] = [f.input([6, 4]), f.input([6, 4])];
    const c = set(b);
    const d = add(a, c);
    f.output(d);
    on(grid, a, b);
    a.outerSplit(0, 3).parallelize("DIDx");
    b.outerSplit(0, 2).parallelize("DIDy");
    const text = propagated(f);
    expect(text(c)).toBe("y2 3 4");
    expect(text(d)).toBe("x3 2 4");
  });

  it("10: a reduction over a sharded axis leaves the type free for another axis", () => {
    const f = new Fusion();
    const [x, w, y] = [f.input([6, 8]), f.input([4, 8]), f.input([6, 4])];
    const u = linear(x, w);
    const v = add(y, u);
    f.output(v);
    on(two, x, w, y);
    x.outerSplit(1, 2).parallelize("DIDx");
    w.outerSplit(1, 2).parallelize("DIDx");
    y.outerSplit(1, 2).parallelize("DIDx");
    const text = propagated(f);
    expect(text(u)).toBe("6 x2 2 rx2 r4");
    expect(text(v)).toBe("6 x2 2");
  });

  it("moves along with a permute, and stops at a broadcast axis", () => {
    const f = new Fusion();
    const [x, scale] = [f.input([6, 4]), f.input([1, 6])];
    const y = permute(x, [1, 0]);
    const z = mul(y, scale);
    f.output(z);
    on(two, x);
    x.outerSplit(1, 2).parallelize("DIDx");
    const text = propagated(f);
    expect(text(y)).toBe("x2 2 6");
    expect(text(z)).toBe("x2 2 6");
    expect(text(scale)).toBe("1 6");
  });
});

describe("backward", () => {
  it("6: Stream goes back to a fusion input, on parts only", () => {
    const f = new Fusion();
    const a = f.input([6, 4]);
    const b = add(a, a);
    const c = add(b, b);
    f.output(c);
    c.outerSplit(0, 3).parallelize("Stream");
    const text = propagated(f);
    expect(text(b)).toBe("s3 2 4");
    expect(text(a)).toBe("s3 2 4");
  });

  it("9: an axis that the producer left free", () => {
    const f = new Fusion();
    const [a, b] = [f.input([6, 4]), f.input([6, 4])];
    const c = set(b);
    const d = add(a, c);
    f.output(d);
    on(grid, a, b);
    a.outerSplit(0, 3).parallelize("DIDx");
    b.outerSplit(1, 2).parallelize("DIDy");
    const text = propagated(f);
    expect(text(c)).toBe("x3 2 y2 2");
    expect(text(d)).toBe("x3 2 y2 2");
  });

  it("what others make of a tensor that is cut going back is cut alike", () => {
    const f = new Fusion();
    const [a, b] = [f.input([6, 4]), f.input([6, 4])];
    const c = set(b);
    const e = sum(relu(c), [0]);
    f.output(add(a, c));
    f.output(e);
    on(two, a, b);
    a.outerSplit(0, 2).parallelize("DIDx");
    const text = propagated(f);
    expect(text(c)).toBe("x2 3 4");
    expect(text(e)).toBe("rx2 r3 4");
  });

  it("attention whose result alone has a reader on a mesh runs there, with its further output", () => {
    const f = new Fusion();
    const [q, k, v, x] = [f.input([4, 4, 8]), f.input([4, 8, 8]), f.input([4, 8, 8]), f.input([4, 4, 8])];
    const { output, logsumexp } = sdpa(q, k, v);
    f.output(add(x, output));
    on(two, x);
    x.outerSplit(0, 2).parallelize("DIDx");
    const shape = propagated(f);
    expect([output, logsumexp].map(shape)).toEqual(["x2 2 4 8", "x2 2 4"]);
    lower(f);
  });

  it("an input without an annotation is replicated on the mesh of its reader", () => {
    const f = new Fusion();
    const [a, b] = [f.input([6]), f.input([6])];
    f.output(add(a, b));
    on(two, a);
    a.outerSplit(0, 2).parallelize("DIDx");
    expect(propagated(f)(b)).toBe("6");
  });
});

describe("chunks and devices on one axis", () => {
  const rows = (): { f: Fusion; x: TensorView; out: TensorView; z: TensorView } => {
    const f = new Fusion();
    const [x, h, w] = [f.input([16, 4]), f.input([16, 8]), f.input([4, 8])];
    const out = linear(h, w);
    const z = add(x, out);
    f.output(z);
    on(two, x, h, w);
    x.outerSplit(0, 4);
    x.outerSplit(1, 2).parallelize("DIDx");
    h.outerSplit(1, 2).parallelize("DIDx");
    w.outerSplit(1, 2).parallelize("DIDx");
    return { f, x, out, z };
  };

  it("share a split that both have: each chunk is spread over the devices", () => {
    const { f, x, out, z } = rows();
    out.outerSplit(0, 4).parallelize("Stream");
    const text = propagated(f);
    expect(text(z)).toBe("s4 x2 2 4");
    expect(text(out)).toBe("s4 x2 2 4 rx2 r4");
    expect(text(x)).toBe("s4 x2 2 4");
  });

  it("stay apart if they are split differently", () => {
    const { f, z, out } = rows();
    out.outerSplit(0, 8).parallelize("Stream");
    const text = propagated(f);
    expect(text(z)).toBe("4 x2 2 4");
    expect(text(out)).toBe("s8 2 4 rx2 r4");
  });
});

describe("what does not spread", () => {
  it("chunks of the devices' shares onto an axis without the devices", () => {
    const f = new Fusion();
    const x = f.input([6, 8]);
    const y = set(x);
    f.output(y);
    on(two, x, y);
    x.outerSplit(0, 2).parallelize("DIDx");
    y.outerSplit(1, 2).parallelize("DIDx");
    y.outerSplit(2, 2).parallelize("Stream");
    const text = propagated(f);
    expect(text(y)).toBe("6 x2 s2 2");
    expect(text(x)).toBe("x2 3 8");
  });

  it("anything onto a tensor with a mesh", () => {
    const f = new Fusion();
    const x = f.input([6, 4]);
    const y = relu(x);
    const z = relu(y);
    f.output(z);
    on(two, x, y);
    x.outerSplit(0, 2).parallelize("DIDx");
    const text = propagated(f);
    expect(text(y)).toBe("6 4");
    expect(text(z)).toBe("6 4");
  });

  it.each([{ propagate: false }, { nvfuserLimits: true }])("anything with %o", (options) => {
    const f = new Fusion();
    const x = f.input([6, 4]);
    const y = relu(x);
    f.output(y);
    on(two, x);
    x.outerSplit(0, 2).parallelize("DIDx");
    expect(propagated(f, options)(y)).toBe("6 4");
  });

  it("Stream onto an axis that an op reduces, unless chunks are accumulated", () => {
    const build = (): readonly [Fusion, TensorView, TensorView] => {
      const f = new Fusion();
      const [grad, x] = [f.input([16, 6]), f.input([16, 4])];
      const w = matmul(permute(grad, [1, 0]), x);
      const b = sum(grad, [0]);
      f.output(w);
      f.output(b);
      grad.outerSplit(0, 4).parallelize("Stream");
      return [f, w, b];
    };
    const [f, w, b] = build();
    expect(propagated(f)(w)).toBe("6 4 r4 r4");
    expect(propagated(f)(b)).toBe("r4 r4 6");
    const [again, accumulated] = build();
    expect(propagated(again, { accumulate: true })(accumulated)).toBe("6 4 rs4 r4");
  });

  it("a program that is annotated whole", () => {
    const f = new Fusion();
    const x = f.input([2, 4]);
    const y = relu(x);
    f.output(y);
    on(two, x, y);
    x.axis(0).parallelize("DIDx");
    y.axis(0).parallelize("DIDx");
    const changes: boolean[] = [];
    lower(f, { onPass: ({ pass, changed }) => pass === "propagate-shardings" && changes.push(changed) });
    expect(changes).toEqual([false]);
  });

  it("parts through a reshape that do not divide its axes", () => {
    const f = new Fusion();
    const x = f.input([6, 3]);
    const y = reshape(x, [3, 2, 3]);
    f.output(y);
    on(two, x);
    x.outerSplit(0, 2).parallelize("DIDx");
    expect(propagated(f)(y)).toBe("3 2 3");
  });
});
