/** Slices with a step that divides the axis: of an axis that devices share, they are local. */
import { expect, it } from "vitest";
import { DeviceMesh, Fusion, Tensor, type TensorView } from "@braid-compiler/braid";
import { lower } from "../../src/compile/lower.ts";
import { print } from "../../src/host/print/print.ts";
import { everyNth } from "../../src/import/views.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";

function sliced(start: number, stop: number, step: number): { readonly fusion: Fusion; readonly y: TensorView | null } {
  const fusion = new Fusion();
  const x = fusion.input([2, 8], "float");
  x.setDeviceMesh(DeviceMesh.range(2)).outerSplit(1, 2).parallelize("DIDx");
  const y = everyNth(x, 1, start, stop, step);
  if (y !== null) fusion.output(y);
  return { fusion, y };
}

it("takes the columns of whole steps, without communication", () => {
  const { fusion } = sliced(1, 8, 2);
  const x = Tensor.from(
    [
      [0, 1, 2, 3, 4, 5, 6, 7],
      [8, 9, 10, 11, 12, 13, 14, 15],
    ],
    "float",
  );
  expect(evaluateFusion(fusion.data(), [x]).outputs[0]?.data).toEqual(Float32Array.of(1, 3, 5, 7, 9, 11, 13, 15));
  expect(print(lower(fusion))).not.toMatch(/type=(?:All|Reduce|Gather|Scatter)/u);
});

it.each([
  ["a step of 1", 0, 8, 1],
  ["a start beyond the first step", 2, 8, 2],
  ["an end before the last", 0, 7, 2],
  ["a step that leaves a rest", 0, 8, 3],
])("leaves %s to slice", (_, start, stop, step) => {
  expect(sliced(start, stop, step).y).toBeNull();
});
