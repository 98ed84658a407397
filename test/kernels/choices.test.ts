/** Choices between the two numbers that are compared are one instruction: as in JavaScript, NaN and zeros included. */
import { expect, it } from "vitest";
import { evaluateLanes } from "../../src/kernels/simd/lane-expressions.ts";
import { choose, constant, type Expression, operand } from "../../src/numerics/scalar/expression.ts";
import { at } from "../../src/support/invariant.ts";
import { encodeModule } from "../../src/support/wasm/encoding.ts";
import { createFunctionWriter } from "../../src/support/wasm/function-writer.ts";
import { get, load, store } from "../../src/support/wasm/instructions.ts";
import { createWasmMemory, instantiateWasm } from "../../src/support/webassembly.ts";
import { compileOfOne } from "./compiled-expressions.ts";

const numbers = [NaN, -Infinity, -1, -0, 0, 1, Infinity];
const x = operand("f32", 0);

const bounds = numbers.map((value) => constant("f32", value));
const choices = bounds.flatMap((bound) =>
  (["lt", "gt", "le", "ge", "eq", "ne"] as const).flatMap((comparison) => [
    choose([x, comparison, bound], x, bound),
    choose([bound, comparison, x], bound, x),
    choose([x, comparison, bound], bound, x),
  ]),
);

/** Of all numbers, in one vector of lanes after the other. */
function inLanes(expression: Expression): readonly number[] {
  const memory = createWasmMemory(2 ** 16);
  const floats = new Float32Array(memory.buffer);
  floats.set(numbers);
  const writer = createFunctionWriter(1);
  const place = { pointer: 0, offset: 0 };
  const value = at(evaluateLanes(writer, expression, [[writer.keep(load("v128.load", place))]]), 0);
  writer.emit(store(place, get(value)));
  const code = { name: "run", parameters: 1, locals: writer.locals(), body: writer.body() };
  const { run } = instantiateWasm(encodeModule([code], "unshared"), memory);
  for (let i = 0; i < numbers.length; i += 4) run?.(4 * i);
  return [...floats.subarray(0, numbers.length)];
}

it("have the bits of JavaScript in every lane", () => {
  for (const expression of choices) {
    const inJavaScript = compileOfOne(expression);
    const expected = numbers.map((number) => Number(inJavaScript(number)));
    expect(inLanes(expression), JSON.stringify(expression)).toEqual(expected);
  }
});
