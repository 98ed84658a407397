/** The table of dtypes of the Python package is that of src. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { dtypes } from "../../src/numerics/dtype.ts";

it("Python has a row for every dtype: its bytes, its name in PyTorch and its cudaDataType", () => {
  const file = path.resolve(import.meta.dirname, "../../python/src/braid_torch/dtypes.py");
  const rows = [...readFileSync(file, "utf8").matchAll(/^ {4}"(\w+)": \((\d+), "(\w+)", (\d+)\),$/gm)];
  expect(rows.map((row) => row.slice(1))).toEqual(
    Object.entries(dtypes).map(([dtype, { bytes, names, cuda }]) => [
      dtype,
      String(bytes),
      names.torch,
      String(cuda.data),
    ]),
  );
});
