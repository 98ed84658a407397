/** argmax: ties, NaN, dtypes and shapes on the oracle; and on devices. */
import { describe, expect, it } from "vitest";
import { argmax, type DType, Fusion, gradients, type NestedValues, Tensor } from "@braid-compiler/braid";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { at } from "../../src/support/invariant.ts";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { onMesh } from "../support/on-mesh.ts";
import { diagnosticOf } from "./expect-diagnostic.ts";

function valuesOf(values: NestedValues, axis: number, dtype: DType = "float"): NestedValues {
  const tensor = Tensor.from(values, dtype);
  const f = new Fusion();
  f.output(argmax(f.input(tensor.shape, dtype), axis));
  return Tensor.toArray(at(evaluateFusion(f.data(), [tensor]).outputs, 0));
}

describe("argmax", () => {
  it("is the first of equals, and NaN is largest", () => {
    expect(valuesOf([3, 7, 7, -1], 0)).toBe(1n);
    expect(valuesOf([-0, 0], 0)).toBe(0n);
    expect(valuesOf([1, NaN, Infinity, NaN], 0)).toBe(1n);
    expect(valuesOf([-Infinity, -Infinity], 0)).toBe(0n);
    expect(valuesOf([[1, 5, 2], [9, 4, 9]], -1)).toEqual([1n, 0n]); // prettier-ignore
    expect(valuesOf([[1, 5, 2], [9, 4, 9]], 0, "bfloat16")).toEqual([1n, 0n, 1n]); // prettier-ignore
    expect(valuesOf([0, 1, 1], 0, "bool")).toBe(1n);
    expect(valuesOf([-5n, 2n ** 62n, 2n ** 62n - 1n], 0, "int64")).toBe(1n);
  });

  it("has no gradient, and needs an axis", () => {
    const f = new Fusion();
    const x = f.input([4]);
    const y = argmax(x, 0);
    expect(diagnosticOf(() => gradients(f, { of: [y], wrt: [x] }))).toMatchObject({ code: "not-differentiable" });
    expect(diagnosticOf(() => argmax(x, 1))).toMatchObject({ code: "axis-out-of-range" });
  });

  it("of a sharded axis reduces twice over the devices, and of others none", async () => {
    for (const [cut, collectives] of [
      [1, "Allreduce 2"],
      [0, ""],
    ] as const) {
      // prettier-ignore
      const f = new Fusion();
      const x = f.input([6, 8]);
      f.output(argmax(x, 1));
      onMesh([x], 2);
      x.outerSplit(cut, 2).parallelize("DIDx");
      expect(collectivesOf(f, 2)).toBe(collectives);
      await expectOracle(f, { devices: 2, machineAlone: true });
    }
  });
});
