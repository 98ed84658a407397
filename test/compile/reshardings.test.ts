/** What moves between devices, in bytes, and why. */
import { describe, expect, it } from "vitest";
import {
  add,
  amax,
  compile,
  DeviceMesh,
  expand,
  Fusion,
  gradients,
  linear,
  lower,
  matmul,
  mean,
  mul,
  permute,
  record,
  relu,
  reshape,
  set,
  slice,
  sum,
  type TensorView,
  unsqueeze,
} from "@braid-compiler/braid";
import { reshardings } from "@braid-compiler/braid/internals";
import { mostReceived } from "../routes/received-bytes.ts";
import { reshardingCells } from "../../src/passes/moves/list-reshardings.ts";

const two = DeviceMesh.range(2);

describe("a sequence-parallel MLP annotated on its inputs", () => {
  const build = (): Fusion => {
    const f = new Fusion();
    const [x, w1, w2] = [f.input([null, 4]), f.input([16, 4]), f.input([4, 16])];
    f.output(add(x, linear(relu(linear(x, w1)), w2)));
    for (const tensor of [x, w1, w2]) tensor.setDeviceMesh(two);
    x.outerSplit(0, 2).parallelize("DIDx");
    w1.outerSplit(0, 2).parallelize("DIDx");
    w2.outerSplit(1, 2).parallelize("DIDx");
    return f;
  };

  it("gathers before and reduces behind, and says for whom", () => {
    const [gather, sum, ...others] = reshardings(build(), { sizes: { i0: 6 } });
    // Half of x, which is 6 rows of 4 floats; half of the partial sums, which are as large.
    expect(gather).toMatchObject({ tensor: 0, collective: "Allgather", along: "DIDx", chunked: false, bytes: 48 });
    expect(gather?.reason).toBe("T3 = linear(T0, T1) needs it to follow T1");
    expect(sum).toMatchObject({ collective: "ReduceScatter", along: "DIDx", bytes: 48 });
    expect(sum?.reason).toMatch(/sums over devices$/u);
    expect(others).toEqual([]);
  });

  it("names the dimension of the mesh as the user did", () => {
    const f = new Fusion();
    const x = f.input([8, 4]).setDeviceMesh(DeviceMesh.of({ dp: 2, tp: 2 }));
    const y = set(x).setDeviceMesh(DeviceMesh.of({ dp: 2, tp: 2 }));
    x.outerSplit(0, 2).parallelize("dp");
    f.output(y);
    expect(reshardings(f)).toMatchObject([{ collective: "Allgather", along: "dp" }]);
  });

  it("knows no bytes without sizes", () => {
    expect(reshardings(build()).map(({ bytes }) => bytes)).toEqual([null, null]);
  });
});

it("calls only a sum one", () => {
  const f = new Fusion();
  const x = f.input([8, 4]);
  for (const result of [sum(x, [0]), amax(x, [0])]) f.output(result);
  x.setDeviceMesh(two).outerSplit(0, 2).parallelize("DIDx");
  const reasons = reshardings(f).map(({ reason }) => reason.replaceAll(/T\d+/gu, "T"));
  expect(reasons).toEqual(["T = sum(T) sums over devices", "T = amax(T) reduces over devices"]);
});

it("calls a sum before its bias the sum of the linear, and that of two a partial sum of both", () => {
  const f = new Fusion();
  const [x, w, b, v] = [f.input([8, 4]), f.input([6, 4]), f.input([6]).named("b"), f.input([6, 4])];
  f.output(linear(x, w, b).named("y"));
  f.output(add(linear(x, w), linear(x, v)).named("both"));
  for (const tensor of [x, w, b, v]) tensor.setDeviceMesh(two);
  for (const tensor of [x, w, v]) tensor.outerSplit(1, 2).parallelize("DIDx");
  expect(reshardings(f).map(({ name, reason }) => [name, reason.split(" sums")[0]])).toEqual([
    ["partial sum of y", "sum of y = sum(partial sum of y)"],
    ["partial sum of both", "both = sum(partial sum of both)"],
  ]);
});

it("lists nothing if each device has what it needs", () => {
  const f = new Fusion();
  const [x, y] = [f.input([8, 4]), f.input([8, 4])];
  f.output(add(x, y));
  for (const tensor of [x, y]) tensor.setDeviceMesh(two);
  x.outerSplit(0, 2).parallelize("DIDx");
  expect(reshardings(f)).toEqual([]);
});

it("lists nothing along a mesh dimension of one device, and what moves along the other", () => {
  const f = new Fusion();
  const x = f.input([8, 16]);
  const y = relu(x);
  const z = set(y);
  f.output(z);
  const mesh = new DeviceMesh([[0, 1, 2, 3]]);
  for (const tensor of [x, y, z]) tensor.setDeviceMesh(mesh);
  x.outerSplit(0, 1).parallelize("DIDy");
  y.outerSplit(0, 4).parallelize("DIDx");
  expect(reshardings(f).map(({ collective, along }) => [collective, along])).toEqual([["Allgather", "DIDx"]]);
});

it("lists nothing where a device sends to itself on another mesh", () => {
  const f = new Fusion();
  const x = f.input([8, 16]);
  const y = set(x);
  f.output(y);
  x.setDeviceMesh(new DeviceMesh([[0]]));
  y.setDeviceMesh(new DeviceMesh([0]));
  expect(reshardings(f)).toEqual([]);
});

it("moves the elements of an expanded axis before they are stretched", () => {
  const f = new Fusion();
  const x = f.input([8, 1]);
  const y = expand(x, [8, 64]);
  f.output(y);
  const mesh = DeviceMesh.range(4);
  for (const tensor of [x, y]) tensor.setDeviceMesh(mesh);
  x.outerSplit(0, 4).parallelize("DIDx");
  const [gather] = reshardings(f);
  const [command] = record(lower(f, { rank: 0 }), { rank: 0 }).commands.filter(({ kind }) => kind === "transfer");
  // Three quarters of 8 floats come from other devices.
  expect(gather?.bytes).toBe((3 / 4) * 8 * 4);
  expect(command).toMatchObject({ operation: { input: { shape: [2] }, output: { shape: [4, 2] } } });
});

/** Four devices; tensors of which axis 0 or another is cut among them. */
const four = DeviceMesh.range(4);
const cutOf = (tensor: TensorView, axis = 0): TensorView => {
  tensor.setDeviceMesh(four).outerSplit(axis, 4).parallelize("DIDx");
  return tensor;
};
const whole = (tensor: TensorView): TensorView => tensor.setDeviceMesh(four);

const gradientOf = (f: Fusion, of: TensorView, wrt: TensorView): TensorView => {
  f.output(of);
  return gradients(f, { of: [of], wrt: [wrt] })[0] ?? of;
};

/** Outputs with an expanded axis on their way, and the bytes that each device receives. */
const expanded: Readonly<Record<string, readonly [build: (f: Fusion) => TensorView, bytes: number]>> = {
  "an expanded axis that nothing cuts": [(f) => whole(expand(cutOf(f.input([8, 1])), [8, 64])), 24],
  "a bias that gets rows": [(f) => whole(expand(unsqueeze(cutOf(f.input([64])), 0), [8, 64])), 192],
  "one merged with the axis that is gathered": [
    (f) => whole(reshape(expand(cutOf(f.input([8, 1, 4])), [8, 16, 4]), [128, 4])),
    1536,
  ],
  "one merged with another, exchanged": [
    (f) => cutOf(reshape(expand(cutOf(f.input([8, 1, 4]), 2), [8, 16, 4]), [128, 4])),
    384,
  ],
  "one that is split": [(f) => whole(reshape(expand(cutOf(f.input([8, 1])), [8, 64]), [8, 4, 16])), 1536],
  "one that is permuted": [(f) => whole(permute(expand(cutOf(f.input([8, 1])), [8, 64]), [1, 0])), 1536],
  "one of a sum over devices": [(f) => whole(sum(expand(cutOf(f.input([8, 1, 4])), [8, 64, 4]), [0])), 1536],
  "a sum that is expanded after it": [
    (f) => whole(expand(unsqueeze(sum(cutOf(f.input([4, 8])), [0]), 1), [8, 64])),
    48,
  ],
  "the gradient of one": [
    (f) => {
      const [x, y] = [whole(f.input([8, 1])), cutOf(f.input([8, 64]), 1)];
      return gradientOf(f, sum(mul(expand(x, [8, 64]), y), [0, 1]), x);
    },
    54,
  ],
  "the gradient of a mean": [
    (f) => {
      const x = cutOf(f.input([8, 64]));
      return whole(gradientOf(f, mean(x, [0, 1]), x));
    },
    6,
  ],
  "one that another mesh reads": [
    (f) => {
      const x = f.input([8, 1]).setDeviceMesh(DeviceMesh.range(2));
      const y = relu(expand(x, [8, 64]));
      return mul(y.setDeviceMesh(new DeviceMesh([2, 3])), 2);
    },
    2048,
  ],
};

it.each(Object.entries(expanded))("counts what moves of %s", (_, [build, bytes]) => {
  const f = new Fusion();
  f.output(build(f));
  const listed = reshardings(f).reduce((all, each) => all + (each.bytes ?? Number.NaN), 0);
  const { program } = compile(f, { devices: 4, on: "cuda", backend: "nccl" });
  expect([listed, mostReceived(program)]).toEqual([bytes, bytes]);
});

it("says that the user placed the result", () => {
  const f = new Fusion();
  const x = f.input([8, 4]);
  const y = relu(x);
  f.output(y);
  for (const tensor of [x, y]) tensor.setDeviceMesh(two);
  x.outerSplit(0, 2).parallelize("DIDx");
  expect(reshardings(f)[0]?.reason).toBe("the result of T1 = relu(T0) is annotated");
});

it("refuses what lowering refuses, after the passes on the Fusion, too", () => {
  const f = new Fusion();
  const x = f.input([8, 4]).setDeviceMesh(two);
  const y = slice(x, [1, 0], [5, 4]);
  f.output(y);
  y.setDeviceMesh(two).axis(0).parallelize("Stream");
  expect(() => reshardings(f)).toThrow("stream-on-cut-axis");
});

describe("two stages, of which only the last output is annotated", () => {
  const stages = (cut: 0 | 1 | null): Fusion => {
    const f = new Fusion();
    const [x, w0, w1] = [f.input([8, 4]), f.input([6, 4]), f.input([16, 6])];
    const y = linear(linear(x, w0), w1);
    f.output(y);
    for (const tensor of [x, w0]) tensor.setDeviceMesh(two);
    w1.setDeviceMesh(new DeviceMesh([2, 3]));
    if (cut !== null) w1.outerSplit(cut, 2).parallelize("DIDx");
    y.outerSplit(0, 4).parallelize("Stream");
    return f;
  };

  it.each([
    [null, 192],
    [0, 192],
    [1, 96],
  ] as const)("sends each chunk between counterparts, also of whole tensors (w1 cut: %s)", (cut, bytes) => {
    const [sent] = reshardings(stages(cut));
    expect(sent).toMatchObject({ tensor: 3, collective: "SendRecv", chunked: true, bytes });
    const teams = [0, 1].map((rank) => {
      return record(lower(stages(cut), { rank }), { rank, devices: 4 }).commands.flatMap((each) =>
        each.kind === "transfer" && each.operation.kind === "group" ? each.operation.ops.map(({ peer }) => peer) : [],
      );
    });
    expect(teams).toEqual([
      [2, 2, 2, 2],
      [3, 3, 3, 3],
    ]);
  });
});

describe("hints of forgotten annotations", () => {
  const hintsOf = (f: Fusion): readonly string[] => reshardings(f).flatMap(({ hint }) => hint ?? []);

  const product = (cut: { readonly x: boolean; readonly y: boolean }): Fusion => {
    const f = new Fusion();
    const [x, w] = [f.input([8, 4]), f.input([8, 4])];
    const y = linear(x, w);
    f.output(y);
    for (const tensor of [x, w]) tensor.setDeviceMesh(two);
    w.outerSplit(0, 2).parallelize("DIDx");
    if (cut.x) x.outerSplit(0, 2).parallelize("DIDx");
    if (cut.x || !cut.y) y.setDeviceMesh(two);
    if (cut.x) y.outerSplit(0, 2).parallelize("DIDx");
    return f;
  };

  it("names a weight that is gathered for work that every device repeats", () => {
    expect(hintsOf(product({ x: false, y: false }))).toEqual([
      "T1 is a weight that every device gathers, and then every device computes all of T2: cut T2 by DIDx, or leave its mesh out",
    ]);
  });

  it("says nothing of a weight that stays, nor of one gathered for rows that are cut (FSDP)", () => {
    expect(reshardings(product({ x: false, y: true }))).toEqual([]);
    const fsdp = reshardings(product({ x: true, y: true }));
    expect(fsdp).toMatchObject([{ tensor: 1, collective: "Allgather" }]);
    expect(fsdp[0]?.hint).toBeUndefined();
  });

  const stages = (chunked: "hidden" | "moved" | "y"): Fusion => {
    const f = new Fusion();
    const [x, w] = [f.input([4, 8]), f.input([4, 4])];
    const hidden = relu(x);
    const moved = set(hidden);
    const y = matmul(w, moved);
    f.output(y);
    for (const tensor of [x, hidden]) tensor.setDeviceMesh(new DeviceMesh([0]));
    for (const tensor of [w, moved, y]) tensor.setDeviceMesh(new DeviceMesh([1]));
    if (chunked !== "hidden") (chunked === "y" ? y : moved).outerSplit(1, 2).parallelize("Stream");
    else hidden.outerSplit(1, 2).parallelize("Stream");
    return f;
  };

  it.each([
    [
      "hidden",
      [
        'all of T2 is sent before the next stage begins, though T2 has chunks: T3.outerSplit(1, 2).parallelize("Stream")',
      ],
    ],
    [
      "y",
      [
        'all of T2 is sent before the next stage begins, though T4 has chunks: T3.outerSplit(1, 2).parallelize("Stream")',
      ],
    ],
    ["moved", []],
  ] as const)("names a whole transfer between stages where only %s has chunks", (chunked, hints) => {
    expect(hintsOf(stages(chunked))).toEqual(hints);
  });

  const chain = (cutAxis: 0 | 1 | null): Fusion => {
    const f = new Fusion();
    const x = f.input([8, 4]);
    const y = relu(x);
    const z = relu(y);
    f.output(z);
    for (const tensor of [x, y, z]) tensor.setDeviceMesh(two);
    x.outerSplit(0, 2).parallelize("DIDx");
    if (cutAxis !== null) z.outerSplit(cutAxis, 2).parallelize("DIDx");
    return f;
  };

  it("names what lies whole between a gather and a cut of the same axis", () => {
    expect(hintsOf(chain(0))).toEqual([
      "all of T1 goes to every device, and is cut along the same axis again: cut T1 by DIDx, too, and nothing moves",
    ]);
  });

  it.each([1, null] as const)("says nothing if axis %s is cut behind the gather", (axis) => {
    expect(reshardings(chain(axis))).toMatchObject([{ collective: "Allgather" }]);
    expect(hintsOf(chain(axis))).toEqual([]);
  });
});

it("calls tensors by the user's names", () => {
  const f = new Fusion();
  const [x, w] = [f.input([6, 4]).named("x"), f.input([16, 4]).named("w")];
  f.output(linear(x, w).named("hidden"));
  for (const tensor of [x, w]) {
    tensor.setDeviceMesh(two);
    tensor.outerSplit(0, 2).parallelize("DIDx");
  }
  const found = reshardings(f);
  expect(found.map(({ name, reason }) => [name, reason])).toEqual([
    ["x", "hidden = linear(x, w) needs it to follow w"],
  ]);
  const numbers = found.map((each) => [reshardingCells(each)[0], reshardingCells(each, true)[0]]);
  expect(numbers).toEqual([["x", "x (T0)"]]);
});

describe("what a resharding costs", () => {
  const moved = (from: (x: TensorView) => void, to: (y: TensorView) => void): Fusion => {
    const f = new Fusion();
    const x = f.input([8, 8]);
    const y = set(x);
    f.output(y);
    for (const tensor of [x, y]) tensor.setDeviceMesh(DeviceMesh.of({ dp: 2, tp: 2 }));
    from(x);
    to(y);
    return f;
  };
  const grid =
    (rows: string, columns: string) =>
    (tensor: TensorView): void => {
      tensor.outerSplit(0, 2).parallelize(rows);
      tensor.outerSplit(2, 2).parallelize(columns);
    };

  it("names what collectives would move where each device gets what another one has", () => {
    const [swap] = reshardings(moved(grid("dp", "tp"), grid("tp", "dp")));
    expect(swap).toMatchObject({
      collective: "CollectivePermute",
      along: "dp, tp",
      bytes: 64,
      lacks: 64,
      instead: { collectives: ["Allgather", "AllToAll"], bytes: 128 },
    });
    expect(swap && reshardingCells(swap).at(-1)).toBe(
      "T1 = set(T0) is in the program; Allgather, AllToAll would move 128",
    );
  });

  it("says what a device lacks where more moves", () => {
    const gathered = reshardings(moved(grid("dp", "tp"), () => undefined));
    expect(gathered.map(({ bytes, lacks, instead }) => [bytes, lacks, instead])).toEqual([
      [64, 64, undefined],
      [128, 128, undefined],
    ]);
    // nvFuser scatters what every device has.
    const cut = moved(() => undefined, grid("dp", "tp"));
    const [scatter] = reshardings(cut, { nvfuserLimits: true });
    expect(scatter).toMatchObject({ collective: "Scatter", lacks: 0 });
    expect(scatter && reshardingCells(scatter)[4]).toMatch(/^\d+ \(lacks 0\)$/u);
    expect(reshardings(cut)).toEqual([]);
  });
});
