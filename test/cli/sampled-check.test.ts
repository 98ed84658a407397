/** `--check` of large outputs: a fault in a row that is compared, and in one that is not. */
import * as braid from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { checkOutputs, type OutputCheck } from "../../src/cli/run/outputs.ts";
import { emptyTensor, tensorBytes, elementsOf } from "../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { sampleRows } from "../../src/oracle/sample/rows.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";

interface Checked {
  readonly row: number;
  readonly check: OutputCheck | undefined;
  readonly failure: braid.Diagnostic | null | undefined;
}

describe("checkOutputs of rows", () => {
  const f = new braid.Fusion();
  const x = f.input([1024, 257], "float");
  f.output(braid.mul(x, x));
  const sample = sampleRows([1024, 257], createRandom(7));
  const inputs = randomInputs([{ dtype: "float", shape: [1024, 257] }], createRandom(1), "uniform");
  const right = at(evaluateFusion(f.data(), inputs).outputs, 0);

  /** The check of an output with one wrong element, which is in the sample or not. */
  function checkWith(fault: "none" | "sampled" | "not sampled", rowSeed: number | null): Checked {
    const rows = new Set(sample[0]);
    const row = Array.from({ length: 1024 }, (_, i) => i).findLast((i) => rows.has(i) === (fault === "sampled")) ?? 0;
    const tensor = emptyTensor(right.dtype, right.shape);
    tensorBytes(tensor).set(tensorBytes(right));
    if (fault !== "none") elementsOf(tensor.dtype, tensor.data).set(row * 257 + 9, 5);
    const [checked] = checkOutputs(f.data(), inputs, new Map(), [[{ tensor, ranks: [0] }]], "braid", { rowSeed });
    return { row, check: checked?.check, failure: checked?.failure };
  }

  it("passes what is right, and says how many rows", () => {
    const { check, failure } = checkWith("none", 7);
    expect(check).toMatchObject({ ok: true, rows: { compared: 510, of: 1024 }, elements: 510 * 257, largestError: 0 });
    expect(failure).toBeNull();
    expect(checkWith("none", null).check).not.toHaveProperty("rows");
  });

  it("names a wrong element of a sampled row by its place in the whole", () => {
    const { row, check, failure } = checkWith("sampled", 7);
    expect(check?.ok).toBe(false);
    expect(failure?.place).toMatchObject({ text: expect.stringContaining(`element [${row}, 9]`) as string });
  });

  it("sees another row only if all are compared", () => {
    expect(checkWith("not sampled", 7).check?.ok).toBe(true);
    const { row, failure } = checkWith("not sampled", null);
    expect(failure?.place).toMatchObject({ text: expect.stringContaining(`element [${row}, 9]`) as string });
  });
});
