/**
 * Runs a Fusion on some devices, on the machine and on worker threads, and compares every output with the oracle:
 * within the bounds for random floats, and bit for bit for small integers (where the sums are exact, unless the setting
 * says that they round). All back ends must give the same bits.
 */
import { type Backend, compile, type ExecutorOptions, type Fusion, MultiDeviceExecutor } from "@braid-compiler/braid";
import { expect } from "vitest";
import type { AnyCompilation } from "../../src/compile/compile.ts";
import { shapeOf } from "../../src/ir/sizes.ts";
import { compare } from "../../src/oracle/value.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { indexLimits } from "../../src/ir/runs.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { backendsFor, cpuBackends } from "./cpu-backends.ts";

export interface RunSetting extends Omit<ExecutorOptions, "on" | "localRanks"> {
  readonly seed?: number;
  /** Whether small integers round as well, so that only bounds hold; false if omitted. */
  readonly rounds?: boolean;
  /** Whether elements may have no bound, as after a sort of numbers that round; false if omitted. */
  readonly someUnbounded?: boolean;
  /** Runs on the machine alone: for many small programs. */
  readonly machineAlone?: boolean;
  /** Sizes of the extents that the Fusion leaves open, by name. */
  readonly sizes?: ReadonlyMap<string, number>;
  /** Runs this instead of compiling the Fusion. */
  readonly compilation?: AnyCompilation;
}

export async function expectOracle(fusion: Fusion, setting: RunSetting): Promise<void> {
  const { seed = 1, rounds = false, machineAlone = false, someUnbounded = false, ...rest } = setting;
  const { sizes = new Map(), compilation, ...options } = rest;
  const data = fusion.data();
  const limits = indexLimits(data, sizes);
  const shapes = data.inputs.map((id, i) => {
    const tensor = data.tensors[id];
    if (tensor === undefined) throw new Error("an input without a tensor");
    const limit = limits.get(i);
    return { dtype: tensor.dtype, shape: shapeOf(tensor, sizes), ...(limit === undefined ? {} : { limit }) };
  });
  const executors = await createExecutors(
    compilation ?? compiledOnce(fusion, options, sizes),
    options,
    machineAlone ? cpuBackends.slice(0, 1) : backendsFor(data.ops.length),
  );
  try {
    for (const mode of ["small-integers", "uniform"] as const) {
      const inputs = randomInputs(shapes, createRandom(seed), mode);
      const { outputs, bounds } = evaluateFusion(data, inputs);
      const results = await Promise.all(executors.map((executor) => executor.run(inputs)));
      for (const actual of results) expect(actual).toEqual(results[0]);
      outputs.forEach((expected, i) => {
        const result = at(results[0] ?? [], i);
        expect(result.shape).toEqual(expected.shape);
        if (mode === "small-integers" && !rounds) expect(result.data).toEqual(expected.data);
        const comparison = compare(result, expected, bounds[i] ?? new Float64Array());
        expect(comparison.firstBad, JSON.stringify(comparison)).toBeNull();
        // An element without a bound is not compared: a test that relies on it would prove nothing.
        if (!someUnbounded) expect(comparison.unbounded).toBe(0);
      });
    }
  } finally {
    await Promise.all(executors.map((executor) => executor.close()));
  }
}

type Options = Omit<ExecutorOptions, "on" | "localRanks">;

/** For all back ends; the Fusion where the executor chooses what to compile. */
function compiledOnce(
  fusion: Fusion,
  { schedule, profile, ...options }: Options,
  sizes: ReadonlyMap<string, number>,
): Fusion | AnyCompilation {
  if (schedule !== undefined || profile !== undefined) return fusion;
  return compile(fusion, { ...options, sizes, notes: false });
}

async function createExecutors(
  source: Fusion | AnyCompilation,
  options: Options,
  backends: readonly Backend[],
): Promise<readonly MultiDeviceExecutor[]> {
  return Promise.all(backends.map((on) => MultiDeviceExecutor.create(source, { ...options, on })));
}
