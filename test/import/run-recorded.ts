/** Runs a model on its devices, beside the values that its framework computed. */
import { expect } from "vitest";
import { type ImportedModel, MultiDeviceExecutor, print } from "@braid-compiler/braid";
import { compareExpected, expectedOutputs, inputsFrom } from "../../src/cli/run/expected.ts";

/** Answers with what moves on rank 0. */
export async function runRecorded(model: ImportedModel, tensors: string, devices: number): Promise<string> {
  const data = model.fusion.data();
  const sizes = new Map<string, number>();
  const inputs = await inputsFrom([tensors], data, model, sizes, new Map());
  const expected = await expectedOutputs(tensors, data, model, sizes);
  const executor = await MultiDeviceExecutor.create(model.fusion, { devices });
  try {
    const outputs = await executor.run(data.inputs.flatMap((_, i) => inputs.get(i) ?? []));
    const copies = outputs.map((tensor) => [{ tensor, ranks: [0] }]);
    const failures = compareExpected(expected, copies).map(({ failure, largestError }) => [
      failure,
      largestError === null,
    ]);
    expect(failures).toEqual(expected.map(() => [null, false]));
    const host = print(executor.hostProgram(0));
    return Array.from(host.matchAll(/\(type=(\w+)/gu), ([, type]) => type).join(" ");
  } finally {
    await executor.close();
  }
}
