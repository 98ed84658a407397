/** A view that is annotated otherwise than its operand asks for the move: buffers of experts, sent to their devices. */
import { expect, it } from "vitest";
import { DeviceMesh, Fusion, groupedMatmul, permute } from "@braid-compiler/braid";
import { annotationWarnings } from "@braid-compiler/braid/internals";

/** Rows of each source, and the experts' weights; `axis` of the permuted rows lies on the devices. */
function experts(axis: number): Fusion {
  const f = new Fusion();
  const [sent, weight, counts] = [f.input([2, 4, 3, 8]), f.input([4, 1, 1, 8, 8]), f.input([4, 2, 1], "int64")];
  const rows = permute(sent, [1, 0, 2, 3]);
  f.output(groupedMatmul(rows, weight, counts));
  for (const tensor of [sent, weight, counts, rows]) tensor.setDeviceMesh(DeviceMesh.range(2));
  sent.outerSplit(0, 2).parallelize("DIDx");
  for (const tensor of [weight, counts]) tensor.outerSplit(0, 2).parallelize("DIDx");
  rows.outerSplit(axis, 2).parallelize("DIDx");
  return f;
}

it("contradicts no operand that lies as the view does", () => {
  expect(annotationWarnings(experts(0))).toEqual([]);
});

it("contradicts one that does not", () => {
  expect(annotationWarnings(experts(1)).map(({ code }) => code)).toEqual(["annotations-conflict"]);
});
