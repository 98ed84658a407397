/**
 * Results of generated CUDA kernels, run on the CPU: every op and dtype over edge values, and layouts that need special
 * kernels. Random units and large tensors have their own files.
 */
import { describe, expect, it } from "vitest";
import { kernelSteps } from "../../../src/backends/cuda/kernels/plan/kernel-steps.ts";
import type { Kernel, UnitKernel } from "../../../src/commands/kernel.ts";
import { dtypes } from "../../../src/numerics/dtype.ts";
import { compileUnary } from "../../kernels/compiled-expressions.ts";
import { elementsOf } from "../../../src/numerics/tensor/host-tensor.ts";
import { unaryDefinitions } from "../../../src/oracle/definitions.ts";
import { at, keysOf } from "../../../src/support/invariant.ts";
import { createRandom } from "../../../src/support/random.ts";
import { binaryFunctions } from "../../../src/ir/ops/functions/binary.ts";
import { unaryFunctions } from "../../../src/ir/ops/functions/unary.ts";
import {
  arithmeticDTypes,
  binary,
  cast,
  floatDTypes,
  floatFunctions,
  inexactFunctions,
  unary,
} from "../../kernels/reference.ts";
import { everyNth, runs } from "../../support/suite.ts";
import { takes } from "../../support/unary-calls.ts";
import { count, operand, runKernel, type Values } from "../../kernels/run-kernel.ts";
import { randomBitsUnit } from "../../kernels/random-creation-steps.ts";
import { evaluateUnit } from "../../kernels/unit-reference.ts";
import { numberCases, withNumber } from "../../kernels/number-cases.ts";
import { edgePairs, edges } from "../../kernels/values.ts";
import { emulationObstacle } from "./emulate/compiler.ts";
import { differences, type Expected, wholeValues } from "./emulate/differences.ts";
import { runEmulated } from "./emulate/run-emulated.ts";

const obstacle = emulationObstacle();
if (obstacle !== null) console.log(`test/backends/cuda/emulated-kernels is skipped: ${obstacle}`);

describe.skipIf(obstacle !== null)("generated kernels", () => {
  it("do every elementwise op with every dtype as the CPU does", () => {
    const cases: Expected[] = [];
    for (const op of ["neg", "abs", "relu", "sign", "logicalNot"] as const) {
      for (const dtype of keysOf(dtypes).filter((each) => takes(unaryFunctions[op].operand, each))) {
        const values = edges[dtype];
        const flat = operand(dtype, [values.length]);
        const kernel: Kernel = { kind: "unary", op, inputs: [flat], outputs: [flat] };
        cases.push({
          name: `${op} ${dtype}`,
          kernel,
          inputs: [values],
          expected: [values.map((x) => unary(op, dtype, x))],
        });
      }
    }
    for (const op of keysOf(binaryFunctions)) {
      const { operand: taken, result } = binaryFunctions[op];
      for (const dtype of keysOf(dtypes).filter((each) => !["pow", "atan2"].includes(op) && takes(taken, each))) {
        const { left, right } = edgePairs(dtype);
        const flat = operand(dtype, [left.length]);
        const outputs = [result === "bool" ? { ...flat, dtype: "bool" as const } : flat];
        const kernel: Kernel = { kind: "binary", op, inputs: [flat, flat], outputs };
        const expected = [left.map((x, i) => binary(op, dtype, x, at(right, i)))];
        cases.push({ name: `${op} ${dtype}`, kernel, inputs: [left, right], expected });
      }
    }
    for (const { op, dtype, scalar } of numberCases) {
      const values = edges[dtype];
      const flat = operand(dtype, [values.length]);
      const outputs = [binaryFunctions[op].result === "bool" ? { ...flat, dtype: "bool" as const } : flat];
      const kernel: Kernel = { kind: "binary", op, scalar, inputs: [flat], outputs };
      const expected = [withNumber({ op, dtype, scalar }, values)];
      cases.push({ name: `${op} ${dtype} ${scalar.text}`, kernel, inputs: [values], expected });
    }
    for (const from of keysOf(dtypes)) {
      for (const to of keysOf(dtypes)) {
        const values = edges[from];
        const [input, output] = [operand(from, [values.length]), operand(to, [values.length])];
        const kernel: Kernel = { kind: "cast", inputs: [input], outputs: [output] };
        const expected = [values.map((x) => cast(from, to, x))];
        cases.push({ name: `cast ${from} to ${to}`, kernel, inputs: [values], expected });
      }
    }
    // All of them take the C++ compiler a quarter of a minute.
    const every = runs({ quick: 31, long: 1 });
    expect(differences(cases.filter((_, i) => i % every === 0))).toEqual([]);
  });

  it("do functions of floats within a unit of the dtype", () => {
    const all = [...floatFunctions, ...inexactFunctions].flatMap((op) => floatDTypes.map((dtype) => ({ op, dtype })));
    const cases = everyNth(all, 5).map(({ op, dtype }) => {
      const values = [0, 1, -1, 0.5, -2.5, 3, 10, -10];
      const flat = operand(dtype, [values.length]);
      const kernel: Kernel = { kind: "unary", op, inputs: [flat], outputs: [flat] };
      return { op, dtype, kernel, inputs: [values] };
    });
    const found = runEmulated(cases);
    for (const [i, { op, dtype, inputs }] of cases.entries()) {
      for (const [j, x] of at(inputs, 0).entries()) {
        const exact = unaryDefinitions[op].float(x);
        const error = Math.abs(Number(at(at(at(found, i), 0), j)) - exact);
        const bound = 4 * dtypes[dtype].epsilon * Math.abs(op === "gelu" || op === "geluTanh" ? x : exact) + 1e-12;
        expect(error <= bound || !Number.isFinite(exact), `${op} ${dtype} of ${x}: ${error}`).toBe(true);
      }
    }
  });

  it.each(["half", "bfloat16"] as const)("do gelu of every %s within a unit, and nearer than --check asks", (dtype) => {
    const patterns = Uint16Array.from({ length: 1 << 16 }, (_, i) => i);
    const values = Array.from(patterns, (_, i) => Number(elementsOf(dtype, patterns).get(i)));
    const flat = operand(dtype, [values.length]);
    const kernel: Kernel = { kind: "unary", op: "gelu", inputs: [flat], outputs: [flat] };
    const [[found = []] = []] = runEmulated([{ kernel, inputs: [values] }]);
    const gelu = compileUnary("gelu", "double");
    const { epsilon } = dtypes[dtype];
    const wrong = values.flatMap((x, i) => {
      const [exact, got] = [Number(gelu(x)), Number(found[i])];
      if (!Number.isFinite(exact)) return Object.is(got, exact) ? [] : [{ x, exact, got }];
      const error = Math.abs(got - exact);
      const smallest = dtype === "half" ? 2 ** -24 : 2 ** -133;
      const rounding = Math.max(epsilon * Math.abs(exact), smallest / 2);
      // --check allows four units of float of the input beside the rounding.
      const near = error <= rounding + 2 * dtypes.float.epsilon * Math.abs(x);
      return near && error <= 2 * rounding ? [] : [{ x, exact, got }];
    });
    expect(wrong.slice(0, 5)).toEqual([]);
  });

  it("turn operands that lie along another axis by tiles", () => {
    const random = createRandom(17);
    const extents = [16, 17, 32, 63, 64, 65, 96, 130] as const;
    const cases = Array.from({ length: 36 }, (_, i): Expected => {
      const dtype = at(arithmeticDTypes, i % arithmeticDTypes.length);
      const [batch, m, n] = [1 + random.integer(3), at(extents, random.integer(8)), at(extents, random.integer(8))];
      // Rows of the operand may be longer than what is read of them.
      const row = m + random.integer(3) * 4;
      const turned = operand(dtype, [batch, m, n], [n * row, 1, row]);
      const other = at(
        [turned, operand(dtype, [batch, m, n]), operand(dtype, [batch, m, n], [0, 0, 1])],
        Math.floor(i / arithmeticDTypes.length) % 3,
      );
      const output = operand(dtype, [batch, m, n]);
      const inputs = [turned, other].map(({ shape, strides }) => {
        const repeats = strides[0] === 0;
        const values = wholeValues(dtype, repeats ? n : count(shape), random);
        return Array.from({ length: count(shape) }, (_, j) => at(values, repeats ? j % n : j));
      });
      const kernel: Kernel = { kind: "binary", op: "add", inputs: [turned, other], outputs: [output] };
      const sources = kernelSteps(kernel, () => 256).steps.flatMap((step) =>
        step.kind === "kernel" ? [step.source] : [],
      );
      expect(sources.map(({ text }) => text.includes("__shared__"))).toEqual([true]);
      const [x, y] = [at(inputs, 0), at(inputs, 1)];
      const expected = [x.map((value, j) => binary("add", dtype, value, at(y, j)))];
      return { name: `add ${dtype} ${batch} ${m} ${n}`, kernel, inputs, expected };
    });
    expect(differences(everyNth(cases, 5), [256, 8, 16, 8])).toEqual([]);
  });

  it("keep values of a tile in registers for later steps of their unit", () => {
    const random = createRandom(23);
    const shape = [70, 96] as const;
    const values = Array.from({ length: 5 }, () => ({ dtype: "half", shape }) as const);
    const kernel: UnitKernel = {
      kind: "unit",
      inputs: [operand("half", shape, [1, 72]), operand("half", shape)],
      outputs: [operand("half", shape), operand("half", shape)],
      values,
      steps: [
        { kind: "Binary", op: "add", inputs: [0, 1], output: 2 },
        { kind: "Unary", op: "neg", inputs: [2], output: 3 },
        { kind: "Binary", op: "mul", inputs: [3, 0], output: 4 },
      ],
      results: [2, 4],
    };
    const { steps } = kernelSteps(kernel, () => 256);
    expect(steps.map((step) => step.kind === "kernel" && step.source.text.includes("__shared__"))).toEqual([true]);
    const inputs = [0, 1].map(() => wholeValues("half", count(shape), random));
    expect(differences([{ name: "unit", kernel, inputs, expected: evaluateUnit(kernel, inputs) }])).toEqual([]);
  });

  it("add GEMMs to what the output holds, with a bias and in batches", () => {
    const random = createRandom(12);
    const [batch, m, n, k] = [2, 37, 41, 33];
    const cases = (["float", "half", "int64", "double"] as const).flatMap((dtype) => {
      const [a, b, bias, held] = [batch * m * k, n * k, n, batch * m * n].map((size) =>
        wholeValues(dtype, size, random),
      );
      if (a === undefined || b === undefined || bias === undefined || held === undefined) return [];
      const number = (values: Values, i: number): bigint => BigInt(at(values, i));
      const sums = Array.from({ length: batch * m * n }, (_, i) => {
        const [row, column] = [Math.floor(i / n), i % n];
        let sum = number(held, i) + number(bias, column);
        for (let z = 0; z < k; z++) sum += number(a, row * k + z) * number(b, column * k + z);
        return dtype === "int64" ? sum : Number(sum);
      });
      const inputs = [operand(dtype, [batch, m, k]), operand(dtype, [n, k]), operand(dtype, [n])];
      const kernel: Kernel = { kind: "linear", inputs, outputs: [operand(dtype, [batch, m, n])], accumulate: true };
      return [{ name: `linear of ${dtype}`, kernel, inputs: [a, b, bias], held: [held], expected: [sums] }];
    });
    expect(cases.length).toBe(4);
    expect(differences(cases)).toEqual([]);
  });

  it("multiply sums of floats of 8 bits by their scales, with the bits of the CPU", () => {
    const random = createRandom(14);
    const [m, n, k] = [2 * 33, 41, 48];
    const draw = (length: number): Values => Array.from({ length }, () => (random.integer(33) - 16) / 4);
    const cases = (["bfloat16", "half", "float"] as const).flatMap((to) =>
      [true, false].map((single): Expected => {
        const kernel: Kernel = {
          kind: "unit",
          inputs: [
            operand("float8_e4m3fn", [2, m / 2, k]),
            operand("float8_e5m2", [n, k], [1, n]),
            operand("float", single ? [] : [2, m / 2]),
            operand("float", single ? [] : [n]),
          ],
          outputs: [operand(to, [2, m / 2, n])],
          values: [
            { dtype: "float8_e4m3fn", shape: [2, m / 2, k] },
            { dtype: "float8_e5m2", shape: [n, k] },
            { dtype: "float", shape: single ? [] : [2, m / 2] },
            { dtype: "float", shape: single ? [] : [n] },
            { dtype: to, shape: [2, m / 2, n] },
          ],
          steps: [{ kind: "Linear", to, inputs: [0, 1, 2, 3], output: 4 }],
          results: [4],
        };
        const inputs = [draw(m * k), draw(n * k), draw(single ? 1 : m), draw(single ? 1 : n)];
        expect(kernelSteps(kernel, () => 256).steps.map(({ kind }) => kind)).toEqual(["gemm"]);
        return { name: `${to} ${single}`, kernel, inputs, expected: runKernel(kernel, inputs) };
      }),
    );
    expect(differences(cases)).toEqual([]);
  });

  it("multiply blocks of 8-bit floats by their scales, which are copied to where cuBLASLt reads them", () => {
    const random = createRandom(15);
    const [m, k] = [2 * 17, 640];
    const draw = (length: number): Values => Array.from({ length }, () => (random.integer(33) - 16) / 4);
    const cases = [1, 128].flatMap((rows) =>
      [false, true].map((inPlace): Expected => {
        // Lines begin at multiples of 4: there are 5 blocks along k.
        const n = rows === 1 ? 41 : 192;
        const ofN = Math.ceil(n / rows);
        const shapes = [
          [2, m / 2, k],
          [n, k],
          [2, m / 2, 5],
          [ofN, 5],
          [2, m / 2, n],
        ] as const;
        const dtypes = ["float8_e4m3fn", "float8_e5m2", "float", "float", "bfloat16"] as const;
        const [x, w, , , y] = shapes.map((shape, i) => operand(at(dtypes, i), shape));
        const ofX = operand("float", shapes[2], inPlace ? [m / 2, 1, 36] : undefined);
        const ofW = operand("float", shapes[3], inPlace ? (rows === 1 ? [1, 44] : [8, 1]) : undefined);
        const kernel: Kernel = {
          kind: "unit",
          inputs: [x, w, ofX, ofW].flatMap((each) => each ?? []),
          outputs: y === undefined ? [] : [y],
          values: shapes.map((shape, i) => ({ dtype: at(dtypes, i), shape })),
          steps: [{ kind: "Linear", to: "bfloat16", inputs: [0, 1, 2, 3], output: 4 }],
          results: [4],
        };
        const kinds = kernelSteps(kernel, () => 256).steps.map(({ kind }) => kind);
        expect(kinds).toEqual([...(inPlace ? [] : ["kernel", "kernel"]), "gemm"]);
        const lengths = [inPlace ? 36 * 5 : m * 5, inPlace ? (rows === 1 ? 44 * 5 : ofN * 8) : ofN * 5];
        const inputs = [draw(m * k), draw(n * k), ...lengths.map(draw)];
        return { name: `${rows} ${inPlace}`, kernel, inputs, expected: runKernel(kernel, inputs) };
      }),
    );
    expect(differences(cases)).toEqual([]);
  });

  it("multiply to rows that end between vectors, by two GEMMs and in scratch where rows begin there as well", () => {
    const random = createRandom(21);
    const draw = (length: number): Values => Array.from({ length }, () => (random.integer(33) - 16) / 4);
    const [m, n, k] = [257, 261, 264];
    const cases = ([261, 264] as const).flatMap((row) =>
      [false, true].map((hasBias): Expected => {
        const kernel: Kernel = {
          kind: "linear",
          inputs: [operand("half", [m, k]), operand("half", [n, k]), ...(hasBias ? [operand("half", [n])] : [])],
          outputs: [operand("half", [m, n], [row, 1])],
        };
        const { steps, scratchBytes } = kernelSteps(kernel, () => 256);
        const gemms = steps.flatMap((step) => (step.kind === "gemm" ? [step.contraction.n] : []));
        expect([gemms, steps.length, scratchBytes]).toEqual([
          [256, 5],
          row === 261 ? 3 : 2,
          row === 261 ? m * 264 * 2 : 0,
        ]);
        const inputs = [draw(m * k), draw(n * k), ...(hasBias ? [draw(n)] : [])];
        return { name: `${row} ${hasBias}`, kernel, inputs, expected: runKernel(kernel, inputs) };
      }),
    );
    expect(differences(cases)).toEqual([]);
    const kinds = (kernel: Kernel): readonly string[] => kernelSteps(kernel, () => 256).steps.map(({ kind }) => kind);
    const of = (dtype: "half" | "float", columns: number): Kernel => ({
      kind: "linear",
      inputs: [operand(dtype, [m, k]), operand(dtype, [columns, k])],
      outputs: [operand(dtype, [m, columns])],
    });
    expect(kinds(of("half", 264))).toEqual(["gemm"]);
    expect(kinds(of("float", 261))).toEqual(["gemm"]);
    // Few products.
    expect(kinds(of("half", 237))).toEqual(["gemm"]);
  });

  it("add GEMMs to their last input, with a bias and in batches, whatever the strides", () => {
    const random = createRandom(13);
    const [batch, m, n, k] = [2, 37, 41, 33];
    const strides = [
      [m * n, n, 1],
      [m * n, 1, m],
      [m * (n + 3), n + 3, 1],
    ] as const;
    const cases = (["bfloat16", "float", "int64", "double"] as const).flatMap((dtype) =>
      strides.flatMap((ofAddend) =>
        [strides[0], ofAddend].flatMap((ofOutput) => {
          const [a, b, bias, addend] = [batch * m * k, n * k, n, batch * m * n].map((size) =>
            wholeValues(dtype, size, random),
          );
          if (a === undefined || b === undefined || bias === undefined || addend === undefined) return [];
          const number = (values: Values, i: number): bigint => BigInt(at(values, i));
          const sums = Array.from({ length: batch * m * n }, (_, i) => {
            const [row, column] = [Math.floor(i / n), i % n];
            let sum = number(addend, i) + number(bias, column);
            for (let z = 0; z < k; z++) sum += number(a, row * k + z) * number(b, column * k + z);
            return dtype === "int64" ? sum : Number(sum);
          });
          const operands = [operand(dtype, [batch, m, k]), operand(dtype, [n, k]), operand(dtype, [n])];
          const kernel: Kernel = {
            kind: "linear",
            inputs: [...operands, operand(dtype, [batch, m, n], ofAddend)],
            outputs: [operand(dtype, [batch, m, n], ofOutput)],
            addend: true,
          };
          return [{ name: `linear of ${dtype}`, kernel, inputs: [a, b, bias, addend], expected: [sums] }];
        }),
      ),
    );
    expect(cases.length).toBe(24);
    expect(differences(everyNth(cases, 5))).toEqual([]);
  });

  it("combine parts and fill with zeros", () => {
    const random = createRandom(6);
    const flat = operand("bfloat16", [37]);
    const inputs = [0, 1, 2].map(() => wholeValues("bfloat16", 37, random));
    const sums = Array.from({ length: 37 }, (_, i) => inputs.reduce((sum, values) => sum + Number(at(values, i)), 0));
    const combine: Kernel = { kind: "combine", op: "sum", inputs: [flat, flat, flat], outputs: [flat] };
    // More outputs than one kernel takes, one of them of other strides.
    const apart = operand("bfloat16", [37], [3]);
    const outputs = [flat, flat, apart, flat, flat, flat, flat, flat, flat];
    const shared: Kernel = { kind: "combine", op: "sum", inputs: [flat, flat, flat], outputs };
    const fill: Kernel = { kind: "fill", inputs: [], outputs: [operand("int64", [3, 5], [7, 1])] };
    const count: Kernel = { kind: "iota", start: 7, step: -3, inputs: [], outputs: [operand("int64", [37])] };
    const wrapped: Kernel = {
      kind: "iota",
      start: 2 ** 31 - 2,
      step: 1,
      inputs: [],
      outputs: [operand("int", [4], [2])],
    };
    const full: Kernel = {
      kind: "unit",
      inputs: [],
      outputs: [flat],
      values: [flat],
      steps: [{ kind: "Full", value: "0.1", inputs: [], output: 0 }],
      results: [0],
    };
    const drawn = [0, 1, 2].map((form): Expected => {
      const kernel = randomBitsUnit([5, 33], form);
      const inputs = [[-7n], [0n, 33n, 66n, 99n, 2n ** 40n], Array.from({ length: 33 }, (_, i) => BigInt(i))];
      return { name: `random ${form}`, kernel, inputs, expected: evaluateUnit(kernel, inputs) };
    });
    const counted = Array.from({ length: 37 }, (_, i) => 7n - 3n * (2n ** 40n + BigInt(i)));
    expect(
      differences([
        { name: "iota", kernel: count, inputs: [], origins: [2 ** 40], expected: [counted] },
        {
          name: "iota int",
          kernel: wrapped,
          inputs: [],
          origins: [1],
          expected: [[2 ** 31 - 1, -(2 ** 31), 1 - 2 ** 31, 2 - 2 ** 31]],
        },
        ...drawn,
        { name: "full", kernel: full, inputs: [], expected: [Array.from({ length: 37 }, () => 0.10009765625)] },
        { name: "combine", kernel: combine, inputs, expected: [sums] },
        { name: "combine into all", kernel: shared, inputs, expected: outputs.map(() => sums) },
        { name: "fill", kernel: fill, inputs: [], expected: [Array.from({ length: 15 }, () => 0n)] },
      ]),
    ).toEqual([]);
  });
});
