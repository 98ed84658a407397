/** What 8-bit floats cost: GEMMs by their own rates, quantizing by its bytes, and which bytes a gather moves. */
import {
  compile,
  DeviceMesh,
  type DType,
  Fusion,
  linear,
  type MachineProfile,
  quantize,
  scaledLinear,
  simulate,
  type TensorView,
} from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { at } from "../../src/support/invariant.ts";
import { gemms } from "../../src/tune/calibrate/probe-fusions.ts";
import { gemmGrid } from "../../src/tune/calibrate/measure-gemms.ts";
import { calibrationSizes } from "../../src/tune/calibrate/calibration-host.ts";
import { mostReceived } from "../routes/received-bytes.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { roundProfile } from "./profile.ts";

const size = 256;
/** In bfloat16 a GEMM of this size takes 1 us. */
const rate = (2 * size ** 3) / 1e6;

function profileOf(rates: Readonly<Partial<Record<DType, number>>>): MachineProfile {
  const products = Object.entries(rates).map(([dtype, teraflops]) => ({
    dtype: dtype as DType,
    m: [size],
    n: [size],
    k: [size],
    teraflops: [teraflops],
  }));
  return { ...roundProfile, on: "cuda", products, sustained: [] };
}

function timed(dtype: DType, profile: MachineProfile): { readonly us: number; readonly assumed: readonly string[] } {
  const shape = { m: size, n: size, k: size };
  const { program } = compile(gemms(1, shape, dtype), { devices: 1, streams: 1, on: "cuda" });
  const { trace, assumptions } = simulate(program, profile, { graph: true });
  const [gemm] = trace.toSorted((a, b) => b.end - b.start - (a.end - a.start));
  return { us: 1000 * ((gemm?.end ?? NaN) - (gemm?.start ?? NaN)), assumed: assumptions };
}

describe("a scaled GEMM", () => {
  const inUse = timed("bfloat16", profileOf({ bfloat16: rate })).us;

  it("takes its usual part of the time of bfloat16 where it was not measured, and says so", () => {
    const { us, assumed } = timed("float8_e4m3fn", profileOf({ bfloat16: rate }));
    expect(us).toBeCloseTo(inUse / 1.6);
    expect(assumed).toEqual(["no calibration for float8_e4m3fn: GEMMs are timed as in bfloat16, 1.6 times as fast"]);
  });

  it("takes the measured time, also of the other format", () => {
    const measured = profileOf({ bfloat16: rate, float8_e4m3fn: 1.8 * rate });
    expect(timed("float8_e4m3fn", measured)).toEqual({ us: expect.closeTo(inUse / 1.8) as number, assumed: [] });
    expect(timed("float8_e5m2", measured).us).toBeCloseTo(inUse / 1.8);
    expect(timed("bfloat16", measured)).toEqual({ us: inUse, assumed: [] });
  });

  it("is measured by a probe that multiplies 8-bit floats", async () => {
    await expectOracle(gemms(2, { m: 16, n: 32, k: 48 }, "float8_e4m3fn"), { devices: 2, rounds: true });
    const dtypes = new Set<DType>();
    const sizes = { ...calibrationSizes.cuda, m: [64], n: [64], k: [64] };
    const took = async (fusion: Fusion): Promise<number> => {
      for (const each of fusion.inputs) dtypes.add(each.dtype);
      return 2 * fusion.outputs.length;
    };
    const grid = await gemmGrid({ devices: 2, sizes, say: () => {}, took }, at(sizes.scaled, 0));
    expect(grid).toMatchObject({ dtype: "float8_e4m3fn", teraflops: [(2 * 64 ** 3) / 2e6] });
    expect([...dtypes]).toEqual(["float8_e4m3fn", "float"]);
  });
});

/** x [m, k] of bfloat16 lies by rows, and y by columns: x is gathered before it is quantized, or afterwards. */
const [m, n, k] = [64, 256, 128];

function gathered(product: (x: TensorView, w: TensorView, given: TensorView) => TensorView, ofW: DType): Fusion {
  const f = new Fusion();
  const [x, w, given] = [f.input([m, k], "bfloat16"), f.input([n, k], ofW), f.input([], "float")];
  const y = product(x, w, given);
  f.output(y);
  for (const each of [x, w, given, y]) each.setDeviceMesh(DeviceMesh.range(2));
  for (const each of [x, w]) each.outerSplit(0, 2).parallelize("DIDx");
  y.outerSplit(1, 2).parallelize("DIDx");
  return f;
}

const quantized = (options: (given: TensorView) => Parameters<typeof quantize>[1]): Fusion =>
  gathered((x, w, given) => {
    const { values, scale } = quantize(x, options(given));
    return scaledLinear(values, w, scale, given);
  }, "float8_e4m3fn");

describe("a quantized operand that is gathered", () => {
  const own = (m / 2) * k;

  it.each([
    ["rows", quantized(() => ({ granularity: "row" })), own + 4 * (m / 2)],
    // The largest value is that of all devices: an all-reduce of one float.
    ["a tensor", quantized(() => ({ granularity: "tensor" })), own + 4],
    ["a given scale", quantized((scale) => ({ scale })), own],
    ["bfloat16, not quantized", gathered((x, w) => linear(x, w), "bfloat16"), 2 * own],
  ] as const)("moves its bytes and scales: %s", async (_, fusion, bytes) => {
    expect(mostReceived(compile(fusion, { devices: 2 }).program)).toBe(bytes);
    await expectOracle(fusion, { devices: 2, rounds: true, machineAlone: true });
  });

  it("is quantized in the time of its bytes", () => {
    const f = new Fusion();
    const x = f.input([m, k], "bfloat16");
    f.output(quantize(x, { dtype: "float8_e5m2", scale: f.input([], "float") }).values);
    const { program } = compile(f, { devices: 1, streams: 1 });
    const time = simulate(program, roundProfile, { graph: true }).milliseconds * 1000 - roundProfile.costs.run;
    // Two bytes an element are read and one is written, and the scale: 10 us for 1,000 bytes.
    expect(time).toBeCloseTo((3 * m * k + 4) / 100);
  });
});
