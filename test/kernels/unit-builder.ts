/** Writes units down step by step; a value is known by its number. */
import type { UnitKernel, UnitStep, UnitValue } from "../../src/commands/kernel.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import type { BinaryOpType, ReductionOpType, UnaryOpType } from "../../src/ir/ops/op.ts";
import { at } from "../../src/support/invariant.ts";
import { operand } from "./run-kernel.ts";

export interface UnitBuilder {
  readonly unary: (op: UnaryOpType, x: number) => number;
  readonly cast: (x: number, to: DType) => number;
  readonly binary: (op: BinaryOpType, x: number, y: number) => number;
  readonly reduce: (op: ReductionOpType, x: number, axes: readonly number[]) => number;
  readonly broadcast: (x: number, axis: number) => number;
  readonly permute: (x: number, order: readonly number[]) => number;
  readonly reshape: (x: number, shape: readonly number[]) => number;
  readonly slice: (x: number, ranges: readonly (readonly [start: number, stop: number])[]) => number;
  readonly cat: (axis: number, ...parts: readonly number[]) => number;
  readonly matmul: (a: number, b: number) => number;
  readonly linear: (x: number, weight: number, bias?: number) => number;
}

/** Inputs and outputs are row-major. `build` returns the results. */
export function buildUnit(
  inputs: readonly (readonly number[])[],
  build: (unit: UnitBuilder, ...inputs: readonly number[]) => readonly number[],
  dtype: DType = "float",
): UnitKernel {
  const values: UnitValue[] = inputs.map((shape) => ({ dtype, shape }));
  const steps: UnitStep[] = [];
  const add = (step: UnitStep, shape: readonly number[], to: DType): number => {
    steps.push(step);
    return values.push({ dtype: to, shape }) - 1;
  };
  const shapeOf = (value: number): readonly number[] => at(values, value).shape;
  const dtypeOf = (value: number): DType => at(values, value).dtype;
  const next = (): number => values.length;

  const results = build(
    {
      unary: (op, x) => add({ kind: "Unary", op, inputs: [x], output: next() }, shapeOf(x), dtypeOf(x)),
      cast: (x, to) => add({ kind: "Cast", to, inputs: [x], output: next() }, shapeOf(x), to),
      binary: (op, x, y) => {
        const shape = shapeOf(x).map((extent, axis) => Math.max(extent, at(shapeOf(y), axis)));
        return add({ kind: "Binary", op, inputs: [x, y], output: next() }, shape, dtypeOf(x));
      },
      reduce: (op, x, axes) => {
        const shape = shapeOf(x).filter((_, axis) => !axes.includes(axis));
        return add({ kind: "Reduction", op, axes, inputs: [x], output: next() }, shape, dtypeOf(x));
      },
      broadcast: (x, axis) => {
        const flags = shapeOf(x)
          .map(() => false)
          .toSpliced(axis, 0, true);
        return add(
          { kind: "Broadcast", flags, inputs: [x], output: next() },
          shapeOf(x).toSpliced(axis, 0, 1),
          dtypeOf(x),
        );
      },
      permute: (x, order) => {
        const shape = order.map((axis) => at(shapeOf(x), axis));
        return add({ kind: "Permute", order, inputs: [x], output: next() }, shape, dtypeOf(x));
      },
      reshape: (x, shape) => add({ kind: "Reshape", inputs: [x], output: next() }, shape, dtypeOf(x)),
      slice: (x, ranges) =>
        add(
          { kind: "Slice", ranges: ranges.map(([start, stop]) => ({ start, stop })), inputs: [x], output: next() },
          ranges.map(([start, stop]) => stop - start),
          dtypeOf(x),
        ),
      cat: (axis, ...parts) => {
        const extent = parts.reduce((sum, part) => sum + at(shapeOf(part), axis), 0);
        const first = at(parts, 0);
        const shape = shapeOf(first).with(axis, extent);
        return add({ kind: "Cat", axis, inputs: parts, output: next() }, shape, dtypeOf(first));
      },
      matmul: (a, b) => {
        const shape = [...shapeOf(a).slice(0, -1), at(shapeOf(b), shapeOf(b).length - 1)];
        return add({ kind: "Matmul", inputs: [a, b], output: next() }, shape, dtypeOf(a));
      },
      linear: (x, weight, bias) => {
        const shape = [...shapeOf(x).slice(0, -1), at(shapeOf(weight), 0)];
        const operands = bias === undefined ? [x, weight] : [x, weight, bias];
        return add({ kind: "Linear", inputs: operands, output: next() }, shape, dtypeOf(x));
      },
    },
    ...inputs.keys(),
  );
  return {
    kind: "unit",
    inputs: inputs.map((shape) => operand(dtype, shape)),
    outputs: results.map((result) => operand(dtypeOf(result), shapeOf(result))),
    values,
    steps,
    results,
  };
}
