/** The two programs of splitBackward: what is saved, and that both together compute what one program does. */
import { describe, expect, it } from "vitest";
import {
  add,
  compile,
  type CompileOptions,
  DeviceMesh,
  Fusion,
  type GradientRequest,
  gradients,
  layerNorm,
  linear,
  mul,
  type SavePolicy,
  set,
  splitBackward,
  tanh,
  type TensorView,
} from "@braid-compiler/braid";
import { layoutOf } from "../../../src/ir/layout.ts";
import { shapeOf } from "../../../src/ir/sizes.ts";
import type { Tensor } from "../../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { randomInputs } from "../../../src/oracle/random-inputs.ts";
import { at } from "../../../src/support/invariant.ts";
import { createRandom } from "../../../src/support/random.ts";
import { diagnosticOf } from "../expect-diagnostic.ts";

type Lowering = Omit<CompileOptions, "devices">;

interface Model {
  readonly f: Fusion;
  readonly request: GradientRequest;
  /** The layers' first results, activations and outputs. */
  readonly between: readonly TensorView[];
}

/** Layers x + down(tanh(up(layerNorm(x)))). */
function model(layers: number, devices = 1, tokens = 8): Model {
  const f = new Fusion();
  const [input, cotangent] = [f.input([tokens, 4], "double"), f.input([tokens, 4], "double")];
  const between: TensorView[] = [];
  let x = input;
  const weights: TensorView[] = [];
  for (let layer = 0; layer < layers; layer++) {
    const [up, down] = [f.input([16, 4], "double"), f.input([4, 16], "double")];
    weights.push(up, down);
    const u = linear(layerNorm(x), up);
    const g = tanh(u);
    const y = linear(g, down);
    x = add(y, x);
    between.push(u, g, y, x);
    up.setDeviceMesh(DeviceMesh.range(devices)).outerSplit(0, devices).parallelize("DIDx");
    down.setDeviceMesh(DeviceMesh.range(devices)).outerSplit(1, devices).parallelize("DIDx");
  }
  for (const rows of [input, cotangent]) {
    rows.setDeviceMesh(DeviceMesh.range(devices)).outerSplit(0, devices).parallelize("DIDx");
  }
  f.output(x);
  return { f, between, request: { of: [x], cotangents: [cotangent], wrt: [input, ...weights] } };
}

function drawn(f: Fusion): ReadonlyMap<number, Tensor> {
  const shapes = f.inputs.map((each) => ({ dtype: each.dtype, shape: shapeOf(each.data(), new Map()) }));
  const values = randomInputs(shapes, createRandom(3), "uniform");
  return new Map(f.inputs.map(({ id }, i) => [id, at(values, i)]));
}

const kinds = ({ f, between }: Model, policy: SavePolicy, request: GradientRequest): readonly number[] =>
  splitBackward(f, request, policy).saved.map(({ forward }) => between.findIndex(({ id }) => id === forward.id));

describe("saved tensors", () => {
  it("are what the backward pass reads, without views", () => {
    const one = model(1);
    const { saved } = splitBackward(one.f, one.request);
    // The mean and root of each row, the norm and the activation.
    expect(saved.map(({ forward }) => forward.rank).toSorted((a, b) => a - b)).toEqual([1, 1, 2, 2]);
    expect(kinds(one, "all", one.request)).toContain(1);
  });

  it("are results of contractions for minimal, and the listed ones for save", () => {
    const two = model(2);
    expect(kinds(two, "minimal", two.request)).toEqual([0, 2, 4]);
    const listed = two.between.slice(3, 4);
    expect(kinds(two, { save: listed }, two.request)).toEqual([3]);
    expect(kinds(two, { save: [] }, two.request)).toEqual([]);
  });

  it("fit into the given bytes", () => {
    const two = model(2);
    const bytes = (policy: SavePolicy): number =>
      splitBackward(two.f, two.request, policy).saved.reduce(
        (sum, { forward }) => sum + 8 * shapeOf(forward.data(), new Map()).reduce((a, b) => a * b, 1),
        0,
      );
    for (const limit of [0, 300, 1100, 2500, 1e6]) expect(bytes({ bytes: limit })).toBeLessThanOrEqual(limit);
    expect(bytes({ bytes: 1100 })).toBeGreaterThan(0);
    const symbolic = new Fusion();
    const x = symbolic.input([null]);
    const request = { of: [tanh(x)], cotangents: [symbolic.input([x.axis(0)])], wrt: [x] };
    expect(diagnosticOf(() => splitBackward(symbolic, request, { bytes: 8 })).code).toBe("size-missing");
  });

  it("lie in the backward pass as in the forward pass, without Stream", () => {
    const { f, request, between } = model(1, 2);
    at(between, 0).outerSplit(0, 4).parallelize("Stream");
    const { forward, backward, saved } = splitBackward(f, request, "minimal");
    const [own] = saved;
    expect(own && [...(layoutOf(own.backward.data())?.shares.keys() ?? [])]).toContain("DIDx");
    expect(own?.backward.data().domain.loop.map(({ parallelType }) => parallelType)).not.toContain("Stream");
    for (const [each, devices] of [
      [forward, 2],
      [backward, 2],
    ] as const) {
      const { report } = compile(each, { devices });
      expect(report?.findings.filter(({ severity }) => severity === "error")).toEqual([]);
    }
  });
});

describe("both programs", () => {
  const policies: readonly SavePolicy[] = ["all", "minimal", { bytes: 1100 }, { bytes: 0 }];
  it.each(policies)("compute what one program does: %o", (policy) => {
    const { f, request } = model(2);
    const { forward, backward, saved } = splitBackward(f, request, policy);
    const before = f.data();
    expect(f.data()).toBe(before);
    const values = drawn(f);
    const known = new Map(values);
    const valuesOf = (each: Fusion): readonly Tensor[] => each.inputs.map(({ id }) => known.get(id) ?? at([], id));
    const results = evaluateFusion(forward.data(), valuesOf(forward)).outputs;
    forward.outputs.forEach(({ id }, i) => known.set(id, at(results, i)));
    expect(saved.every(({ forward: own }) => known.has(own.id))).toBe(true);
    const split = evaluateFusion(backward.data(), valuesOf(backward)).outputs;
    for (const gradient of gradients(f, request)) if (gradient !== null) f.output(gradient);
    const whole = evaluateFusion(f.data(), valuesOf(f)).outputs.slice(1);
    expect(split).toEqual(whole);
  });
});

describe("state", () => {
  /** Scaled by the old state, or by a number. */
  const counting = (isScaled: boolean): { readonly f: Fusion; readonly old: TensorView; readonly split: Split } => {
    const f = new Fusion();
    const [x, dy, state] = [f.input([3, 4]), f.input([3, 4]), f.input([1, 1])];
    const old = set(state);
    const y = mul(tanh(x), isScaled ? old : 2);
    f.output(y);
    f.output(add(state, 1), { alias: state });
    return { f, old, split: (policy) => splitBackward(f, { of: [y], cotangents: [dy], wrt: [x] }, policy) };
  };
  type Split = (policy: SavePolicy) => ReturnType<typeof splitBackward>;

  it("is written by the forward pass alone", () => {
    const { forward, backward } = counting(false).split("all");
    expect(forward.data().aliases).toEqual([{ output: 1, input: 2 }]);
    expect(backward.data().aliases).toBeUndefined();
    const { buffers } = compile(backward, { devices: 1 }).program;
    expect(buffers.filter(({ output }) => output !== undefined)).toEqual([]);
  });

  it("that the backward pass reads is refused, unless the forward pass saves a copy", () => {
    const { old, split } = counting(true);
    expect(diagnosticOf(() => split("all"))).toMatchObject({ code: "alias-invalid", found: "T2" });
    const { saved, backward } = split({ save: [old] });
    expect(saved.map(({ forward }) => forward.id)).toEqual([old.id]);
    expect(backward.inputs.map(({ id }) => id)).toEqual([0, 1, old.id]);
  });

  it("that the next forward pass overwrites is not saved, but a value that is copied to it", () => {
    const saving = (isCopied: boolean): readonly [saved: readonly number[], next: number] => {
      const f = new Fusion();
      const [x, dy, state] = [f.input([3, 4]), f.input([3, 4]), f.input([3, 4])];
      const next = add(state, x);
      const y = tanh(next);
      f.output(y);
      f.output(isCopied ? set(next) : next, { alias: state });
      const { saved } = splitBackward(f, { of: [y], cotangents: [dy], wrt: [x] }, { save: [next] });
      return [saved.map(({ forward }) => forward.id), next.id];
    };
    const [saved, next] = saving(true);
    expect(saved).toEqual([next]);
    expect(diagnosticOf(() => saving(false))).toMatchObject({ code: "alias-invalid", found: `T${next}` });
  });
});

describe("memory", () => {
  const tokens = 512;
  const temporaries = (f: Fusion, options: Lowering = {}): number => {
    const { program } = compile(f, { ...options, devices: 1, verify: "off" });
    return at(program.ranks, 0).arenaBytes.temporary;
  };
  const joint = (layers: number): Fusion => {
    const { f, request } = model(layers, 1, tokens);
    for (const gradient of gradients(f, request)) if (gradient !== null) f.output(gradient);
    return f;
  };

  it("of one program grows by what the backward pass reads of a layer, because the rest is freed at its last use", () => {
    const growth = (options: Lowering): number =>
      (temporaries(joint(8), options) - temporaries(joint(4), options)) / (4 * 8 * tokens);
    // Doubles a row: the activation 16, the norm's input and output 4 each, mean and root 1 each; 3 for alignment.
    expect(growth({})).toBeLessThanOrEqual(29);
    expect(growth({ deallocate: false })).toBeGreaterThan(90);
  });

  it("of a backward pass that runs layers again from their inputs is that of one layer, and what is saved", () => {
    const peak = (layers: number, policy: SavePolicy | "layers"): number => {
      const { f, request, between } = model(layers, 1, tokens);
      const ends = between.filter((_, i) => i % 4 === 3);
      const { backward, saved } = splitBackward(f, request, policy === "layers" ? { save: ends } : policy);
      const sizes = saved.map(({ backward: own }) => shapeOf(own.data(), new Map()).reduce((a, b) => a * b, 8));
      return sizes.reduce((a, b) => a + b, temporaries(backward)) / (8 * tokens);
    };
    const [four, eight] = [peak(4, "layers"), peak(8, "layers")];
    expect(eight - four).toBe(4 * 4);
    expect(eight).toBeLessThan(peak(8, "all") / 2);
  });
});
