/** A slice of other axes than the chunked one runs in the loop of its neighbours. */
import { expect, it } from "vitest";
import { Fusion, linear, lower, mul, slice } from "@braid-compiler/braid";
import { walk } from "../../../src/host/traverse.ts";

it.each([true, false])("a gate and its values are one loop (symbolic rows: %s)", (symbolic) => {
  const f = new Fusion();
  const [x, w] = [f.input([symbolic ? null : 7, 4]), f.input([6, 4])];
  const y = linear(x, w);
  const [rows = 7] = y.extents;
  const z = mul(slice(y, [0, 0], [rows, 3]), slice(y, [0, 3], [rows, 6]));
  f.output(z);
  z.outerSplit(0, 3).parallelize("Stream");
  const { body } = lower(f);
  const loops = body.filter(({ kind }) => kind === "ForLoop");
  // The first loop makes the streams wait, the second has the chunks.
  expect(loops).toHaveLength(2);
  const outside = walk(body.filter(({ kind }) => kind !== "ForLoop")).map(({ kind }) => kind);
  expect(outside).not.toContain("Slice");
  expect(outside).not.toContain("PostOnStream");
});
