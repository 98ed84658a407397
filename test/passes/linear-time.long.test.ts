/**
 * Lowering takes steps in proportion to the number of ops, however they are connected: a chain, a star, one long loop,
 * branches, several meshes. Steps are counted, not timed. bench/lowering.ts measures times.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  add,
  cast,
  DeviceMesh,
  Fusion,
  matmul,
  mul,
  neg,
  set,
  sum,
  type LowerOptions,
  type TensorView,
} from "@braid-compiler/braid";
import type * as braid from "@braid-compiler/braid";
import { startCounting, type StepCounter } from "../support/count-steps.ts";

type Family = (ops: number) => Fusion;

const mesh = DeviceMesh.range(4);

function on(tensor: TensorView, type: "DIDx" | "Stream" | null, devices = mesh): TensorView {
  tensor.setDeviceMesh(devices);
  if (type !== null) tensor.axis(0).parallelize(type);
  return tensor;
}

function repeated(first: (f: Fusion) => TensorView, next: (last: TensorView, i: number) => TensorView): Family {
  return (ops) => {
    const f = new Fusion();
    let last = first(f);
    for (let i = 0; i < ops; i++) last = next(last, i);
    f.output(last);
    return f;
  };
}

const families: Readonly<Record<string, Family>> = {
  "a chain of units": repeated((f) => f.input([4, 6]), neg),
  "a chain of loops over the devices": repeated(
    (f) => on(f.input([4, 6]), "DIDx"),
    (last, i) => on(set(last), i % 2 === 0 ? "Stream" : "DIDx"),
  ),
  "one loop of many ops": repeated(
    (f) => on(f.input([4, 6]), null),
    (last) => on(mul(last, last), "Stream"),
  ),
  "loops and units that part and meet": repeated(
    (f) => on(f.input([4, 6]), null),
    (last, i) => on(add(on(set(last), "Stream"), on(neg(last), null)), i % 3 === 0 ? null : "Stream"),
  ),
  "stages on one device after the other": repeated(
    (f) => on(f.input([4, 6]), null, new DeviceMesh([0])),
    (last, i) => {
      const device = new DeviceMesh([(i + 1) % 4]);
      const here = on(set(last), null, device);
      return on(add(here, here), null, device);
    },
  ),
  "many outputs of one input": (ops) => {
    const f = new Fusion();
    const x = on(f.input([4, 6]), "DIDx");
    for (let i = 0; i < ops; i++) f.output(on(set(x), "Stream"));
    return f;
  },
  "sums over the devices, for the caller alone": (ops) => {
    const f = new Fusion();
    let last = on(f.input([4, 6]), null);
    for (let i = 0; i < ops; i++) {
      f.output(cast(sum(on(f.input([4, 6]), "DIDx"), [0]), "double"));
      last = matmul(last, on(f.input([6, 6]), null));
    }
    f.output(last);
    return f;
  },
  "a tree of sums over many inputs": (ops) => {
    const f = new Fusion();
    const pending = Array.from({ length: ops + 1 }, () => f.input([4, 6]));
    for (let i = 0; i < ops; i++) {
      const [a, b] = pending.splice(0, 2);
      if (a === undefined || b === undefined) throw new Error("two operands are left");
      const sum = add(a, b);
      sum.axis(0).parallelize("Stream");
      pending.push(sum);
    }
    for (const root of pending) f.output(root);
    return f;
  },
};

const settings: Readonly<Record<string, LowerOptions>> = {
  sends: {},
  copies: { backend: "cuda" },
};

let steps: StepCounter;
let lower: typeof braid.lower;

beforeAll(async () => {
  steps = await startCounting();
  ({ lower } = await import("@braid-compiler/braid"));
});

afterAll(async () => {
  await steps.stop();
});

describe.each(Object.entries(families))("%s", (_, build) => {
  it.each(Object.entries(settings))("four times the ops, four times the steps: %s", async (_name, options) => {
    const [ops, times] = [60, 4];
    const [few, many] = [build(ops), build(times * ops)];
    // Passes remember what they made of a Fusion.
    lower(build(ops), options);
    const base = await steps.count(() => void lower(few, options));
    const more = await steps.count(() => void lower(many, options));
    expect(base).toBeGreaterThan(100 * ops);
    expect(more / base).toBeLessThan(1.05 * times);
  });
});
