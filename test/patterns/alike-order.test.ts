/** Ranks keep one order of the communications of a team, also if some of them lack statements of others. */
import { expect, it } from "vitest";
import { compile, DeviceMesh, Fusion, matmul, neg, set } from "@braid-compiler/braid";
import { expectOracle } from "../support/expect-oracle.ts";

/** A weight may be gathered before a product and the sum of it. Rank 0 alone has another op. */
function withOneMore(): Fusion {
  const f = new Fusion();
  const [a, b, w, own] = [f.input([4, 4]), f.input([4, 4]), f.input([4, 4]), f.input([4])];
  const y = matmul(matmul(a, b), set(w));
  f.output(y);
  f.output(neg(own));
  for (const tensor of [a, b, w, y]) tensor.setDeviceMesh(DeviceMesh.range(2));
  own.setDeviceMesh(new DeviceMesh([0]));
  a.outerSplit(1, 2).parallelize("DIDx");
  for (const rows of [b, w]) rows.outerSplit(0, 2).parallelize("DIDx");
  return f;
}

it("compiles to no deadlock", async () => {
  const compilation = compile(withOneMore(), { devices: 2, notes: false });
  expect(compilation.report.findings).toEqual([]);
  await expectOracle(withOneMore(), { devices: 2, machineAlone: true, compilation });
});
