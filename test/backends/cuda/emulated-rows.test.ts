/** Kernels over rows: which nests they hold, and their results, run on the CPU. */
import { describe, expect, it } from "vitest";
import { kernelSteps } from "../../../src/backends/cuda/kernels/plan/kernel-steps.ts";
import type { UnitKernel } from "../../../src/commands/kernel.ts";
import type { DType } from "../../../src/numerics/dtype.ts";
import { at } from "../../../src/support/invariant.ts";
import { createRandom } from "../../../src/support/random.ts";
import { count, type Values } from "../../kernels/run-kernel.ts";
import { buildUnit } from "../../kernels/unit-builder.ts";
import { evaluateUnit } from "../../kernels/unit-reference.ts";
import { randomValues } from "../../kernels/values.ts";
import { emulationObstacle } from "./emulate/compiler.ts";
import { differences, type Expected, wholeValues } from "./emulate/differences.ts";
import { runEmulated } from "./emulate/run-emulated.ts";

const obstacle = emulationObstacle();
if (obstacle !== null) console.log(`test/backends/cuda/emulated-rows is skipped: ${obstacle}`);

/** As a norm: two reductions, the second of what follows from the first, then a result per element and one per row. */
function norm(shape: readonly number[], dtype: DType): UnitKernel {
  const last = shape.length - 1;
  return buildUnit(
    [shape, shape.slice(-1)],
    (u, x, w) => {
      const distance = u.binary("sub", x, u.broadcast(u.reduce("amax", x, [last]), last));
      const total = u.reduce("sum", u.binary("add", distance, x), [last]);
      const shifted = u.binary("add", distance, u.broadcast(total, last));
      const weight = shape.slice(0, -1).reduce((value) => u.broadcast(value, 0), w);
      return [u.binary("mul", shifted, weight), u.unary("neg", total)];
    },
    dtype,
  );
}

function kernelsOf(unit: UnitKernel): readonly string[] {
  return kernelSteps(unit, () => 256).steps.map((step) => {
    if (step.kind === "gemm") return "gemm";
    return step.source.text.includes("total") ? "rows" : "other";
  });
}

describe("a unit that normalizes rows", () => {
  it("is one kernel without scratch, which loads the row once", () => {
    const steps = kernelSteps(norm([2048, 12_288], "bfloat16"), () => 256);
    expect(steps.scratchBytes).toBe(0);
    const [source, ...others] = steps.steps.flatMap((step) => (step.kind === "kernel" ? [step.source] : []));
    expect(others).toEqual([]);
    expect(source).toMatchObject({ grid: [2048, 1, 1], block: [512, 1, 1] });
    expect(source?.text.split("(input0 + ").length).toBe(2);
  });

  it("is one kernel if 16-bit operands are computed with in float, a weight for all rows among them", () => {
    const shape = [64, 4096];
    const unit = buildUnit(
      [shape, shape.slice(-1)],
      (u, x, w) => {
        const wide = u.cast(x, "float");
        const distance = u.binary("sub", wide, u.broadcast(u.reduce("amax", wide, [1]), 1));
        return [u.cast(u.binary("mul", distance, u.broadcast(u.cast(w, "float"), 0)), "bfloat16")];
      },
      "bfloat16",
    );
    expect(kernelsOf(unit)).toEqual(["rows"]);
    expect(kernelSteps(unit, () => 256).scratchBytes).toBe(0);
  });

  it("is one kernel if a thread's registers hold its elements, for any number of rows", () => {
    for (const shape of [
      [1, 16_384],
      [5, 16_384],
      [3, 40],
      [7, 2],
    ]) {
      expect(kernelsOf(norm(shape, "bfloat16")), shape.join()).toEqual(["rows"]);
    }
  });

  it("reads longer rows in each of several kernels", () => {
    for (const rows of [1, 5]) {
      expect(kernelsOf(norm([rows, 32_768], "bfloat16"))).toEqual(["rows", "rows"]);
      expect(kernelsOf(norm([rows, 40_000], "bfloat16")).length).toBeGreaterThan(4);
    }
  });

  it("has kernels of their own for reductions of columns", () => {
    const unit = buildUnit([[512, 1024]], (u, x) => {
      const distance = u.binary("sub", x, u.broadcast(u.reduce("amax", x, [1]), 1));
      return [u.reduce("sum", distance, [0])];
    });
    expect(kernelsOf(unit)[0]).toBe("rows");
    expect(kernelsOf(unit).length).toBeGreaterThan(1);
  });
});

describe.skipIf(obstacle !== null)("generated kernels over rows", () => {
  it("compute what the steps say, at addresses of every alignment", () => {
    const random = createRandom(4);
    const settings: readonly (readonly [DType, readonly number[]])[] = [
      ["float", [3, 2]],
      ["float", [300, 7]],
      ["bfloat16", [5, 40]],
      ["half", [2, 3, 264]],
      ["double", [3, 1000]],
      ["int64", [4, 96]],
      ["bfloat16", [2, 4096]],
      ["float", [2, 9000]],
    ];
    const cases = settings.map(([dtype, shape]): Expected => {
      const kernel = norm(shape, dtype);
      const inputs = kernel.inputs.map((input) => wholeValues(dtype, count(input.shape), random));
      const name = `${dtype} ${shape.join(" x ")}`;
      expect(kernelsOf(kernel), name).toEqual(["rows"]);
      return { name, kernel, inputs, expected: evaluateUnit(kernel, inputs) };
    });
    expect(differences(cases, [256, 8])).toEqual([]);
  });

  it("keep values of 16 bits as they are stored for what reads them later", () => {
    const [rows, elements] = [5, 4096];
    const shape = [rows, elements];
    const unit = buildUnit(
      [shape, shape],
      (u, x, y) => {
        const sum = u.binary("mul", u.binary("add", x, y), x);
        const peak = u.reduce("amax", sum, [1]);
        const distance = u.binary("sub", u.cast(sum, "float"), u.broadcast(u.cast(peak, "float"), 1));
        return [sum, u.cast(distance, "float8_e4m3fn"), peak];
      },
      "bfloat16",
    );
    const [step] = kernelSteps(unit, () => 256).steps;
    expect(step?.kind === "kernel" && step.source.text).toContain("alignas(16) unsigned short n0kept[4][8];");
    const random = createRandom(11);
    const inputs = unit.inputs.map(() => randomValues("bfloat16", rows * elements, random));
    const expected = evaluateUnit(unit, inputs);
    expect(differences([{ name: "kept as stored", kernel: unit, inputs, expected }], [256, 2])).toEqual([]);
  });

  it("store for the next kernel in its dtype, whatever stays in registers", () => {
    // As a norm whose result is quantized by blocks: a float per row, and 16 bits per element in scratch.
    const [rows, elements, block] = [6, 512, 128];
    const unit = buildUnit(
      [[rows, elements]],
      (u, x) => {
        const wide = u.cast(x, "float");
        const peak = u.reduce("amax", u.unary("abs", wide), [1]);
        const shifted = u.cast(u.binary("sub", wide, u.broadcast(peak, 1)), "bfloat16");
        const blocks = u.cast(u.reshape(shifted, [rows * (elements / block), block]), "float");
        const least = u.reduce("amin", blocks, [1]);
        return [u.cast(u.binary("sub", blocks, u.broadcast(least, 1)), "float8_e4m3fn"), least];
      },
      "bfloat16",
    );
    const { steps, scratchBytes } = kernelSteps(unit, () => 256);
    expect([kernelsOf(unit), scratchBytes]).toEqual([["rows", "rows"], 2 * rows * elements]);
    const written = steps.map((step) => step.kind === "kernel" && /unsigned short \*scratch0/.test(step.source.text));
    expect(written).toEqual([true, true]);
    const inputs = [randomValues("bfloat16", rows * elements, createRandom(5))];
    const expected = evaluateUnit(unit, inputs);
    expect(differences([{ name: "a norm by blocks", kernel: unit, inputs, expected }], [256, 2])).toEqual([]);
  });

  it("give a row the same bits among any number of rows", () => {
    const random = createRandom(9);
    const [rows, elements] = [5, 1000];
    const [x, w] = [randomValues("float", rows * elements, random), randomValues("float", elements, random)];
    const whole = { kernel: norm([rows, elements], "float"), inputs: [x, w] };
    const alone = Array.from({ length: rows }, (_, row) => ({
      kernel: norm([1, elements], "float"),
      inputs: [x.slice(row * elements, (row + 1) * elements), w],
    }));
    const [all, ...each] = runEmulated([whole, ...alone]);
    const joined = [0, 1].map((output): Values => each.flatMap((outputs) => at(outputs, output)));
    expect(all).toEqual(joined);
  });
});
