/** What attention computes with the rows of a block beside GEMMs, as units, which run in WebAssembly SIMD. */
import type { Operand, UnitKernel, UnitStep, UnitValue } from "../../commands/kernel.ts";
import type { DType } from "../../numerics/dtype.ts";
import type { NumberOperand } from "../../ir/ops/number-operand.ts";
import { at } from "../../support/invariant.ts";

/** The scores of `rows` queries and `columns` keys, `keys` elements from row to row. */
export function scoreRows(dtype: DType, rows: number, columns: number, keys: number): Operand {
  return { dtype, shape: [rows, columns], strides: [keys, 1] };
}

/** One element per row. */
export function rowStatistics(dtype: DType, rows: number, stride = 1): Operand {
  return { dtype, shape: [rows], strides: [stride] };
}

/**
 * In place: exponentials of the distances of the scaled scores to the largest of the row, or to 0 if all are -Infinity.
 * Also their sums, and log(sum(exp(scale score))).
 */
export function exponentialRows(scores: Operand, scale: number, sums: Operand, statistics: Operand): UnitKernel {
  return unitOf(
    [scores],
    [scores, sums, statistics],
    [
      by(scale, 0, 1),
      { kind: "Reduction", op: "amax", axes: [1], inputs: [1], output: 2 },
      ...replaced(2, -Infinity, 0, 3),
      toColumn(4, 5),
      { kind: "Binary", op: "sub", inputs: [1, 5], output: 6 },
      { kind: "Unary", op: "exp", inputs: [6], output: 7 },
      { kind: "Reduction", op: "sum", axes: [1], inputs: [7], output: 8 },
      { kind: "Unary", op: "log", inputs: [8], output: 9 },
      { kind: "Binary", op: "add", inputs: [4, 9], output: 10 },
    ],
    [7, 8, 10],
  );
}

/** Divides each row by its sum, in place; a row whose sum is 0, by 1. */
export function divideRows(results: Operand, sums: Operand): UnitKernel {
  const quotient: UnitStep = { kind: "Binary", op: "div", inputs: [0, 4], output: 5 };
  return unitOf([results, sums], [results], [...replaced(1, 0, 1, 2), toColumn(3, 4), quotient], [5]);
}

/**
 * Turns scores into probabilities P = exp(scale score - logsumexp), and their gradients dP into those of the scores, P
 * (dP - sum(g o)) scale. Both in place. Where logsumexp is -Infinity, all scores are, and P is 0.
 */
export function gradientRows(
  [scores, dp, statistics, g, o]: readonly [Operand, Operand, Operand, Operand, Operand],
  scale: number,
): UnitKernel {
  return unitOf(
    [scores, dp, statistics, g, o],
    [scores, dp],
    [
      { kind: "Binary", op: "mul", inputs: [3, 4], output: 5 },
      { kind: "Reduction", op: "sum", axes: [1], inputs: [5], output: 6 },
      toColumn(6, 7),
      ...replaced(2, -Infinity, 0, 8),
      toColumn(9, 10),
      by(scale, 0, 11),
      { kind: "Binary", op: "sub", inputs: [11, 10], output: 12 },
      { kind: "Unary", op: "exp", inputs: [12], output: 13 },
      { kind: "Binary", op: "sub", inputs: [1, 7], output: 14 },
      { kind: "Binary", op: "mul", inputs: [13, 14], output: 15 },
      by(scale, 15, 16),
    ],
    [13, 16],
  );
}

function by(factor: number, input: number, output: number): UnitStep {
  const scalar: NumberOperand = { position: 1, text: `${factor}` };
  return { kind: "Binary", op: "mul", scalar, inputs: [input], output };
}

/** `input`, with `to` where it is `from`. The outputs are the condition, and then the result. */
function replaced(input: number, from: number, to: number, output: number): readonly UnitStep[] {
  return [
    { kind: "Binary", op: "eq", scalar: { position: 1, text: `${from}` }, inputs: [input], output },
    {
      kind: "Ternary",
      op: "where",
      scalar: { position: 1, text: `${to}` },
      inputs: [output, input],
      output: output + 1,
    },
  ];
}

/** A value per row, as a column. */
function toColumn(input: number, output: number): UnitStep {
  return { kind: "Broadcast", flags: [false, true], inputs: [input], output };
}

/** All values but conditions have the dtype of the first input. The output of step i is the value after inputs and earlier steps. */
function unitOf(
  inputs: readonly Operand[],
  outputs: readonly Operand[],
  steps: readonly UnitStep[],
  results: readonly number[],
): UnitKernel {
  const { dtype } = at(inputs, 0);
  const values: UnitValue[] = inputs.map(({ shape }) => ({ dtype, shape }));
  for (const step of steps) {
    const { shape } = at(values, at(step.inputs, 0));
    const rows = shape.slice(0, 1);
    const isCondition = step.kind === "Binary" && step.op === "eq";
    values.push({
      dtype: isCondition ? "bool" : dtype,
      shape: step.kind === "Reduction" ? rows : step.kind === "Broadcast" ? [...rows, 1] : shape,
    });
  }
  return { kind: "unit", inputs, outputs, values, steps, results };
}
