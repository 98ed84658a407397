/** The constants that hold the results of calls. */
import { expect, it } from "vitest";
import { constantAt } from "../../src/support/constant-name.ts";

/** The line with the column of its call marked by `^`. */
function constant(marked: string): string | null {
  return constantAt(marked.replace("^", ""), marked.indexOf("^") + 1);
}

it.each([
  ["const hidden = ^linear(x, w);", "hidden"],
  ["const hidden = linear^(x, w);", "hidden"],
  ["  const x = f.^input([8, 8]);", "x"],
  ["export const y: TensorView = ^add(x, x);", "y"],
  ["const [x, w] = [f.^input([8]), f.input([8])];", "x"],
  ["const [x, w] = [f.input([8, 8]), f.^input([8, 4])];", "w"],
  // Not what the constant holds, or not for good.
  ["const y = linear(^gelu(x), w);", null],
  ["let y = ^linear(x, w);", null],
  ["return ^linear(x, w);", null],
  ["const [x, w] = [pair(f.^input([8]), 1), 2];", null],
  ["const { x } = ^split(y);", null],
  ["const scaled = y.data(), z = ^add(x, x);", null],
])("%s", (line, name) => {
  expect(constant(line)).toBe(name);
});
