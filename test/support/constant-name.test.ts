/** The constants that hold the results of calls. */
import { expect, it } from "vitest";
import { constantBefore } from "../../src/cli/program/build-program.ts";

/** The text of which `^` marks the call. */
function constant(marked: string): string | null {
  return constantBefore(marked.slice(0, marked.indexOf("^")));
}

it.each([
  ["const hidden = ^linear(x, w);", "hidden"],
  ["const hidden = linear^(x, w);", "hidden"],
  ["  const x = f.^input([8, 8]);", "x"],
  ["export const y: TensorView = ^add(x, x);", "y"],
  ["const [x, w] = [f.^input([8]), f.input([8])];", "x"],
  ["const [x, w] = [f.input([8, 8]), f.^input([8, 4])];", "w"],
  ["const x = f.input([8, 8]), w = f.^input([8, 4]);", "w"],
  ["const hidden =\n    ^relu(linear(x, w));", "hidden"],
  ["const [x, w] = [\n    f.input([8, 8]),\n    f.^input([8, 4]),\n];", "w"],
  ["const { output } = ^sdpa(q, k, v);", "output"],
  ["const { output: heads } = ^sdpa(q, k, v);", "heads"],
  ["const moved = SET > 1 ? ^set(h) : h;", "moved"],
  ["const moved = n === 1 ? h : ^set(h);", "moved"],
  ["const moved: TensorView = two\n    ? f.^input([8])\n    : h;", "moved"],
  // Not what the constant holds, or not for good.
  ["const y = linear(^gelu(x), w);", null],
  ["let y = ^linear(x, w);", null],
  ["return ^linear(x, w);", null],
  ["const [x, w] = [pair(f.^input([8]), 1), 2];", null],
  ["const { output, logsumexp } = ^sdpa(q, k, v);", null],
  ["const block = (x, w) => ^linear(x, w);", null],
  ["const x = f.input([8]);\nuse(^relu(x));", null],
  ["const scaled = pair(y, ^add(x, x));", null],
  ["const y = on ? pair(x, ^relu(x)) : x;", null],
  ["const block = (x) => on ? ^relu(x) : x;", null],
  ["const y = given ?? ^relu(x);", null],
  ["const y = on ? x : off ? ^relu(x) : y;", null],
])("%s", (line, name) => {
  expect(constant(line)).toBe(name);
});
