/**
 * `--input` and `--expect`: files that hold all inputs or outputs of a model by name, in the dtypes of the framework:
 * .safetensors, and .npz as `numpy.savez` writes it, a zip archive with a .npy file for each array, stored or deflated.
 * Nothing is unpacked that is larger than its entry says.
 */
import path from "node:path";
import { inflateRawSync } from "node:zlib";
import { regularSource } from "../../backends/regular-file.ts";
import type { Signature } from "../../compile/lower-all.ts";
import { DiagnosticError, fail, type Place } from "../../diagnostics/diagnostic.ts";
import type { ImportedModel } from "../../import/model.ts";
import { type ZipEntry, zipEntries } from "../../import/zip.ts";
import { nameOf } from "../../ir/origin.ts";
import { shapeOf, type Sizes } from "../../ir/sizes.ts";
import { type DType, dtypes } from "../../numerics/dtype.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../../numerics/tensor/host-tensor.ts";
import { elementsOf } from "../../numerics/tensor/storage.ts";
import { at } from "../../support/invariant.ts";
import { npyTensor } from "./npy.ts";
import { safetensorsTensors } from "./safetensors.ts";
import { invalidFile, readStored, type StoredTensor, whereReadable, withTensorFile } from "./stored-tensor.ts";
import { namesOfTensor } from "./tensor-names.ts";

/** The option that names the file, and what its tensors are. */
export interface NamedFile {
  readonly flag: "--input" | "--expect";
  readonly file: string;
}

/** The names that files may use for each input or output, of which the first is shown. */
export function namesFor(
  { tensors, inputs, outputs }: Signature,
  model: ImportedModel | null,
  side: "inputs" | "outputs",
): readonly (readonly string[])[] {
  const ids = side === "inputs" ? inputs : outputs;
  const ordinal = side === "inputs" ? "in" : "out";
  const single = side === "inputs" ? "x" : "y";
  return ids.map((id, i) => {
    const tensor = at(tensors, id);
    const own = side === "inputs" ? (model?.inputs[i]?.names ?? []) : [model?.outputs[i] ?? []].flat();
    return [
      `${ordinal}${i}`,
      ...own,
      nameOf(tensor) ?? [],
      ...namesOfTensor(tensor),
      ids.length === 1 ? single : [],
    ].flat();
  });
}

/**
 * The tensors of the file for each list of names, with the given dtypes; null where the file has none of the names.
 * Throws `option-value`, `file-unreadable`, `tensor-file-invalid`, `input-shape`.
 */
export async function namedTensors(
  named: NamedFile,
  names: readonly (readonly string[])[],
  { tensors }: Signature,
  ids: readonly number[],
  sizes: Sizes,
): Promise<readonly (Tensor | null)[]> {
  const found = await tensorsIn(named);
  const results: (Tensor | null)[] = [];
  for (const [i, own] of names.entries()) {
    const name = own.find((each) => found.has(each));
    const read = name === undefined ? undefined : found.get(name);
    const wanted = at(tensors, at(ids, i));
    results.push(
      read === undefined ? null : requireForm(named, own, await read(), wanted.dtype, shapeOf(wanted, sizes)),
    );
  }
  return results;
}

type Reads = ReadonlyMap<string, () => Promise<Tensor>>;

async function tensorsIn({ flag, file }: NamedFile): Promise<Reads> {
  const extension = path.extname(file);
  if (extension === ".npz") {
    return npzTensors(file);
  }
  if (extension === ".safetensors") {
    const all = await withTensorFile(file, safetensorsTensors);
    return new Map(all.map((stored) => [stored.name ?? "", () => readStored(stored, dtypeOf(stored))]));
  }
  return fail("option-value", `the file of ${flag} has an unknown format`, {
    place: { kind: "option", text: `${flag} ${file}` },
    found: extension === "" ? "no extension" : `a file that ends in ${extension}`,
    expected: "a file that ends in .npz or .safetensors",
    help: "save the arrays with np.savez, or the tensors with safetensors' save_file",
  });
}

/** Throws `tensor-file-invalid` for one that Braid does not have. */
function dtypeOf({ path: file, name, dtype, spelling }: StoredTensor): DType {
  if (dtype !== null) return dtype;
  return fail("tensor-file-invalid", `${name ?? "a tensor"} has a dtype that Braid does not have`, {
    place: { kind: "file", path: file },
    found: spelling,
    expected: Object.keys(dtypes).join(", "),
    help: "convert the array and save it again",
  });
}

/** Frameworks save bfloat16 as float32, and indices in either width. */
function requireForm(
  { flag, file }: NamedFile,
  names: readonly string[],
  tensor: Tensor,
  dtype: DType,
  shape: readonly number[],
): Tensor {
  const fits = tensor.shape.length === shape.length && tensor.shape.every((extent, i) => extent === shape[i]);
  const [from, to] = [dtypes[tensor.dtype].family, dtypes[dtype].family];
  if (fits && from === to) return converted(tensor, dtype);
  const place: Place = { kind: "option", text: `${flag} ${file}` };
  return fail("input-shape", `${at(names, 0)} of ${flag} has another ${fits ? "dtype" : "shape"}`, {
    place,
    found: `${tensor.dtype} [${tensor.shape.join(", ")}]`,
    expected: `${dtype} [${shape.join(", ")}]`,
    help: "save the arrays that the model was called with, and its results",
  });
}

function converted(tensor: Tensor, dtype: DType): Tensor {
  if (tensor.dtype === dtype) return tensor;
  const result = emptyTensor(dtype, tensor.shape);
  const [from, to] = [elementsOf(tensor.dtype, tensor.data), elementsOf(dtype, result.data)];
  for (let i = 0; i < from.length; i++) {
    const element = from.get(i);
    to.set(i, dtype === "int64" ? BigInt(element) : Number(element));
  }
  return result;
}

/** The arrays by name, each read when it is asked for. Throws `file-unreadable`, `tensor-file-invalid`. */
async function npzTensors(path: string): Promise<Reads> {
  const damaged = (found: string): never => notNpz(path, found);
  const entries = await whereReadable(path, async () => zipEntries(await regularSource(path), damaged));
  return new Map(
    [...entries].map(([member, entry]) => {
      const name = member.replace(/\.npy$/u, "");
      const array = async (): Promise<Tensor> => arrayIn(unpacked(path, name, entry), `${path} (${name})`, name);
      return [name, () => whereReadable(path, array)];
    }),
  );
}

function unpacked(path: string, name: string, { method, size, read }: ZipEntry): Uint8Array {
  if (method === 0) return read();
  if (method !== 8) return notNpz(path, `${name}, packed by another method`);
  try {
    const bytes = inflateRawSync(read(), { maxOutputLength: Math.max(size, 1) });
    if (bytes.length === size) return bytes;
  } catch (error) {
    if (error instanceof DiagnosticError) throw error;
  }
  return notNpz(path, `${name}, which cannot be unpacked to its ${size} bytes`);
}

async function arrayIn(bytes: Uint8Array, path: string, name: string): Promise<Tensor> {
  const read = (start: number, length: number): Promise<Uint8Array> =>
    Promise.resolve(bytes.slice(start, start + length));
  const stored = { ...(await npyTensor({ path, bytes: bytes.length, read })), name };
  const tensor = emptyTensor(dtypeOf(stored), stored.shape);
  const own = tensorBytes(tensor);
  own.set(bytes.subarray(stored.start, stored.start + own.length));
  return tensor;
}

function notNpz(path: string, found: string): never {
  return invalidFile(path, {
    found,
    expected: "a .npz file as numpy.savez writes it",
    help: "save the arrays with np.savez(path, in0=x, in1=w)",
  });
}
