/** Random steps that stretch, join, pad and index. */
import type { UnitValue } from "../../src/commands/kernel.ts";
import { dtypes } from "../../src/numerics/dtype.ts";
import { at } from "../../src/support/invariant.ts";
import { another, firstOf, type Made, type Maker, pick, type StepChoice } from "./random-step.ts";

export const shapeMakers: readonly Maker[] = [
  makeExpand,
  makeCat,
  makePad,
  makeIndexSelect,
  makeGather,
  makeScatterAdd,
  makeScan,
  makeArgsort,
];

/** Stretches every second axis of one element, the first one among them. */
function makeExpand(values: readonly UnitValue[], choice: StepChoice): Made | null {
  const { number, output, dtype, shape } = firstOf(values, choice);
  if (!shape.includes(1)) return null;
  let ones = 0;
  const stretched = shape.map((extent, axis) =>
    extent === 1 && ones++ % 2 === 0 ? 1 + ((choice.detail + axis) % 4) : extent,
  );
  return { step: { kind: "Expand", inputs: [number], output }, value: { dtype, shape: stretched } };
}

function makeCat(values: readonly UnitValue[], choice: StepChoice): Made | null {
  const { number, output, dtype, shape } = firstOf(values, choice);
  if (shape.length === 0) return null;
  const axis = choice.detail % shape.length;
  const fits = (value: UnitValue): boolean =>
    value.dtype === dtype &&
    value.shape.length === shape.length &&
    value.shape.every((extent, i) => i === axis || extent === shape[i]);
  const second = another(values, choice.second, fits) ?? number;
  const third = another(values, choice.third, fits) ?? number;
  const inputs = [number, second, third].slice(0, 1 + (choice.detail % 3));
  const extent = inputs.reduce((sum, input) => sum + at(at(values, input).shape, axis), 0);
  return { step: { kind: "Cat", axis, inputs, output }, value: { dtype, shape: shape.with(axis, extent) } };
}

function makePad(values: readonly UnitValue[], choice: StepChoice): Made | null {
  const { number, output, dtype, shape } = firstOf(values, choice);
  const widths = shape.map((extent, axis) => {
    const before = ((choice.second + axis) % 4) - 1;
    return { before, after: Math.max(((choice.third + axis) % 3) - 1, 1 - extent - before) };
  });
  const isCut = shape.some((extent, axis) => {
    const { before, after } = at(widths, axis);
    return Math.max(0, -before) + Math.max(0, -after) > extent || extent + before + after < 1;
  });
  if (isCut) return null;
  const value = dtype === "float" || dtype === "double" ? "-0.3" : String(choice.detail % 2);
  return {
    step: { kind: "Pad", widths, value, inputs: [number], output },
    value: { dtype, shape: shape.map((extent, axis) => extent + at(widths, axis).before + at(widths, axis).after) },
  };
}

function isIndex({ dtype }: UnitValue): boolean {
  return dtypes[dtype].family === "integer";
}

function sameBut(axis: number | null, a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((extent, i) => i === axis || extent === b[i]);
}

function makeIndexSelect(values: readonly UnitValue[], choice: StepChoice): Made | null {
  const { number, output, dtype, shape } = firstOf(values, choice);
  const index = another(values, choice.second, (value) => isIndex(value) && value.shape.length + shape.length < 5);
  if (index === null || shape.length === 0) return null;
  const axis = choice.detail % shape.length;
  return {
    step: { kind: "IndexSelect", axis, inputs: [number, index], output },
    value: { dtype, shape: shape.toSpliced(axis, 1, ...at(values, index).shape) },
  };
}

function makeGather(values: readonly UnitValue[], choice: StepChoice): Made | null {
  const { number, output, dtype, shape } = firstOf(values, choice);
  if (shape.length === 0) return null;
  const axis = choice.detail % shape.length;
  const index = another(values, choice.second, (value) => isIndex(value) && sameBut(axis, value.shape, shape));
  if (index === null) return null;
  const value = { dtype, shape: at(values, index).shape };
  return { step: { kind: "Gather", axis, inputs: [number, index], output }, value };
}

function makeScan(values: readonly UnitValue[], choice: StepChoice): Made | null {
  const { number, output, dtype, shape } = firstOf(values, choice);
  if (shape.length === 0 || dtype === "bool") return null;
  const axis = choice.detail % shape.length;
  const op = pick(["sum", "prod", "amax", "amin"] as const, choice.second);
  const reverse = choice.third % 2 === 1;
  return { step: { kind: "Scan", op, axis, reverse, inputs: [number], output }, value: { dtype, shape } };
}

function makeArgsort(values: readonly UnitValue[], choice: StepChoice): Made | null {
  const { number, output, shape } = firstOf(values, choice);
  if (shape.length === 0) return null;
  const [axis, descending] = [choice.detail % shape.length, choice.third % 2 === 1];
  return { step: { kind: "Argsort", axis, descending, inputs: [number], output }, value: { dtype: "int64", shape } };
}

function makeScatterAdd(values: readonly UnitValue[], choice: StepChoice): Made | null {
  const { number, output, dtype, shape } = firstOf(values, choice);
  if (shape.length === 0 || dtype === "half" || dtype === "bfloat16" || dtype === "bool") return null;
  const axis = choice.detail % shape.length;
  const index = another(values, choice.second, (value) => isIndex(value) && sameBut(axis, value.shape, shape));
  if (index === null) return null;
  const { shape: added } = at(values, index);
  const source = another(values, choice.third, (value) => value.dtype === dtype && sameBut(null, value.shape, added));
  if (source === null) return null;
  return { step: { kind: "ScatterAdd", axis, inputs: [number, index, source], output }, value: { dtype, shape } };
}
