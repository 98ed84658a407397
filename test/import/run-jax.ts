/**
 * Models that JAX 0.11.2 printed, with the arguments and results that it computed on 8 CPU devices. Each runs on the
 * devices that it is sharded for.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect } from "vitest";
import { importModel, MultiDeviceExecutor, print } from "@braid-compiler/braid";
import { compareExpected, expectedOutputs, inputsFrom } from "../../src/cli/run/expected.ts";

const folder = path.join(import.meta.dirname, "jax");

/** Runs the model on its devices, and answers with what moves on rank 0. */
export async function runJax(name: string): Promise<string> {
  const file = path.join(folder, name);
  const model = await importModel(readFileSync(`${file}.mlir`, "utf8"), { file: `${name}.mlir` });
  const data = model.fusion.data();
  const [sizes, devices] = [new Map<string, number>(), model.devices ?? 0];
  const inputs = await inputsFrom([`${file}.npz`], data, model, sizes, new Map());
  const expected = await expectedOutputs(`${file}.npz`, data, model, sizes);
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
