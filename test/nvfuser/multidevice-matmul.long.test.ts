/** nvFuser's tests/cpp/test_multidevice_matmul.cpp: the values, on 1, 2 and 4 devices. */
import { expect, it } from "vitest";
import { MultiDeviceExecutor } from "@braid-compiler/braid";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { createRandom } from "../../src/support/random.ts";
import { multideviceMatmulPrograms, rowParallelLinear } from "./multidevice-matmul-programs.ts";
import { expectValues } from "./setup.ts";

it.each(multideviceMatmulPrograms)("$name", expectValues);

it("RowParallelLinear, one executor for every number of rows", async () => {
  const f = rowParallelLinear.build(2);
  const executor = await MultiDeviceExecutor.create(f, { devices: 2 });
  try {
    for (const rows of [4, 8, 16]) {
      const shapes = [
        [2, rows, 12],
        [12, 12],
      ].map((shape) => ({ dtype: "float" as const, shape }));
      const inputs = randomInputs(shapes, createRandom(rows), "small-integers");
      expect(await executor.run(inputs)).toEqual(evaluateFusion(f.data(), inputs).outputs);
    }
  } finally {
    await executor.close();
  }
});
