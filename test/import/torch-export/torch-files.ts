/** The recorded files of test/import/torch, and the values that PyTorch computed. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect } from "vitest";
import { safetensorsTensors } from "../../../src/cli/tensor-files/safetensors.ts";
import { readStored, withTensorFile } from "../../../src/cli/tensor-files/stored-tensor.ts";
import { buildModel } from "../../../src/import/torch-export/build.ts";
import { sourceOfBytes } from "../../../src/import/byte-source.ts";
import { withGradients as withImportedGradients } from "../../../src/import/gradients.ts";
import { importedOf } from "../../../src/import/torch-export/import-torch-export.ts";
import type { ExportedModel, ModelInput } from "../../../src/import/torch-export/model.ts";
import { type ExportedProgram, readExportedProgram } from "../../../src/import/torch-export/read.ts";
import { type Tensor } from "../../../src/numerics/tensor/host-tensor.ts";
import { at, invariant } from "../../../src/support/invariant.ts";

const folder = path.resolve(import.meta.dirname, "../torch");

export function torchFile(name: string): Uint8Array {
  return new Uint8Array(readFileSync(path.join(folder, `${name}.pt2`)));
}

export function torchProgram(name: string): ExportedProgram {
  return readExportedProgram(sourceOfBytes(torchFile(name)), `${name}.pt2`);
}

export function readTorch(name: string): ExportedModel {
  return buildModel(torchProgram(name));
}

/** The model as `importModel` differentiates it. */
export function withGradients(model: ExportedModel, gradients: string, wrt?: readonly string[]): ExportedModel {
  const options = { gradients, ...(wrt === undefined ? {} : { wrt }) };
  const { fusion, inputs, outputs } = withImportedGradients(importedOf(model, null), options);
  const added = inputs.slice(model.inputs.length).map(({ names }, i): ModelInput => {
    const tensor = at(fusion.inputs, model.inputs.length + i);
    return { name: at(names, 0), kind: "user", tensor, read: () => null };
  });
  return {
    ...model,
    inputs: [...model.inputs, ...added],
    outputs: outputs.map((name, i) => ({ name, tensor: at(fusion.outputs, i) })),
  };
}

export async function recorded(name: string): Promise<ReadonlyMap<string, Tensor>> {
  const stored = await withTensorFile(path.join(folder, `${name}.io.safetensors`), safetensorsTensors);
  const found = new Map<string, Tensor>();
  for (const each of stored) {
    invariant(each.dtype !== null && each.name !== null, "recorded tensors have names and dtypes of Braid");
    found.set(each.name, await readStored(each, each.dtype));
  }
  return found;
}

export function inputsOf(model: ExportedModel, io: ReadonlyMap<string, Tensor>): readonly Tensor[] {
  return model.inputs.map(({ name, read }) => {
    const tensor = read() ?? io.get(name);
    invariant(tensor !== undefined, "every input has a value", name);
    return tensor;
  });
}

/**
 * Float32 through a few layers: PyTorch's own kernels differ from each other by as much. The oracle's bounds are for the
 * worst case, which is 1,000 times this or without a bound after two layers.
 */
const tolerance = 1e-5;

/** Compares with what PyTorch computed, relative to the largest element. */
export function expectRecorded(name: string, found: Tensor | undefined, io: ReadonlyMap<string, Tensor>): void {
  const wanted = io.get(name);
  invariant(wanted !== undefined && found !== undefined, "both tensors are there", name);
  expect([name, ...found.shape]).toEqual([name, ...wanted.shape]);
  const [numbers, computed] = [wanted, found].map((tensor) => Array.from<number | bigint, number>(tensor.data, Number));
  invariant(numbers !== undefined && computed !== undefined, "both have elements");
  const most = Math.max(...numbers.map(Math.abs));
  const worst = Math.max(...numbers.map((element, i) => Math.abs(element - (computed[i] ?? NaN))));
  expect(worst / most, `${name} differs`).toBeLessThan(tolerance);
}
