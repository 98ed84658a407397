/** `--input` and `--expect`: files that hold all inputs or outputs of a model by name, in the dtypes of the framework. */
import path from "node:path";
import { inflateRawSync } from "node:zlib";
import type { Signature } from "../../compile/lower-all.ts";
import { fail, type Place } from "../../diagnostics/diagnostic.ts";
import type { ImportedModel } from "../../import/model.ts";
import { nameOf } from "../../ir/origin.ts";
import { shapeOf, type Sizes } from "../../ir/sizes.ts";
import { type DType, dtypes } from "../../numerics/dtype.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../../numerics/tensor/host-tensor.ts";
import { elementsOf } from "../../numerics/tensor/storage.ts";
import { at } from "../../support/invariant.ts";
import { npyTensor } from "./npy.ts";
import { safetensorsTensors } from "./safetensors.ts";
import { invalidFile, readStored, type StoredTensor, type TensorFile, withTensorFile } from "./stored-tensor.ts";
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
    // The members are read after the directory, so that only those of known names are.
    const names = await withTensorFile(file, async (opened) => [...(await npzTensors(opened)).keys()]);
    return new Map(names.map((name) => [name, () => memberOf(file, name)]));
  }
  if (extension === ".safetensors") {
    const all = await withTensorFile(file, safetensorsTensors);
    return new Map(all.map((stored) => [stored.name ?? "", () => readStored(stored, dtypeOf(stored))]));
  }
  return fail({
    code: "option-value",
    message: `the file of ${flag} has an unknown format`,
    place: { kind: "option", text: `${flag} ${file}` },
    found: extension === "" ? "no extension" : `a file that ends in ${extension}`,
    expected: "a file that ends in .npz or .safetensors",
    help: "save the arrays with np.savez, or the tensors with safetensors' save_file",
  });
}

function memberOf(file: string, name: string): Promise<Tensor> {
  return withTensorFile(file, async (opened) => {
    const read = (await npzTensors(opened)).get(name);
    const { stored, bytes } = await (read ?? missing)();
    const tensor = emptyTensor(dtypeOf(stored), stored.shape);
    const own = tensorBytes(tensor);
    own.set(bytes.subarray(stored.start, stored.start + own.length));
    return tensor;
  });
}

function missing(): never {
  throw new Error("EIO: the file changed while it was read");
}

/** Throws `tensor-file-invalid` for one that Braid does not have. */
function dtypeOf({ path: file, name, dtype, spelling }: StoredTensor): DType {
  if (dtype !== null) return dtype;
  return fail({
    code: "tensor-file-invalid",
    message: `${name ?? "a tensor"} has a dtype that Braid does not have`,
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
  return fail({
    code: "input-shape",
    message: `${at(names, 0)} of ${flag} has another ${fits ? "dtype" : "shape"}`,
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

// Files of named arrays as `numpy.savez` writes them: a zip archive with a .npy file for each. Members are stored or
// deflated. Nothing is unpacked that is larger than its entry says.

/** A tensor of an archive. `bytes`: its member, with the header of the .npy file. */
interface ArchivedTensor {
  readonly stored: StoredTensor;
  readonly bytes: Uint8Array;
}

const [endMark, entryMark] = [0x06_05_4b_50, 0x02_01_4b_50];
/** The end of an archive has a comment of at most 65,535 bytes. */
const mostEndBytes = 65_557;

/** The members by name, each read when it is asked for. Throws `tensor-file-invalid`. */
async function npzTensors(file: TensorFile): Promise<ReadonlyMap<string, () => Promise<ArchivedTensor>>> {
  const { path, bytes, read } = file;
  const tail = viewOf(await read(Math.max(0, bytes - mostEndBytes), mostEndBytes));
  let end = tail.byteLength - 22;
  while (end >= 0 && tail.getUint32(end, true) !== endMark) end--;
  if (end < 0) return notNpz(path, "no directory at the end of the file");
  const [count, size, start] = [
    tail.getUint16(end + 10, true),
    tail.getUint32(end + 12, true),
    tail.getUint32(end + 16, true),
  ];
  if (start + size > bytes) return notNpz(path, "a directory outside of the file");
  const directory = await read(start, size);
  const view = viewOf(directory);
  const found = new Map<string, () => Promise<ArchivedTensor>>();
  let position = 0;
  for (let i = 0; i < count; i++) {
    if (position + 46 > size || view.getUint32(position, true) !== entryMark)
      return notNpz(path, "a damaged directory");
    const [nameBytes, extra, comment] = [28, 30, 32].map((each) => view.getUint16(position + each, true));
    const name = new TextDecoder().decode(directory.subarray(position + 46, position + 46 + (nameBytes ?? 0)));
    const member: Member = {
      name: name.replace(/\.npy$/u, ""),
      isDeflated: view.getUint16(position + 10, true) === 8,
      packed: view.getUint32(position + 20, true),
      unpacked: view.getUint32(position + 24, true),
      start: view.getUint32(position + 42, true),
    };
    if (!member.isDeflated && view.getUint16(position + 10, true) !== 0)
      return notNpz(path, `${name}, packed by another method`);
    found.set(member.name, () => readMember(file, member));
    position += 46 + (nameBytes ?? 0) + (extra ?? 0) + (comment ?? 0);
  }
  return found;
}

interface Member {
  readonly name: string;
  readonly isDeflated: boolean;
  readonly packed: number;
  readonly unpacked: number;
  readonly start: number;
}

async function readMember({ path, read }: TensorFile, member: Member): Promise<ArchivedTensor> {
  const local = viewOf(await read(member.start, 30));
  if (local.byteLength < 30) return notNpz(path, `${member.name} outside of the file`);
  const first = member.start + 30 + local.getUint16(26, true) + local.getUint16(28, true);
  const packed = await read(first, member.packed);
  const bytes = member.isDeflated ? inflated(path, member, packed) : packed;
  if (bytes.length !== member.unpacked) return notNpz(path, `${member.name} of another size than its entry says`);
  const within = (start: number, length: number): Promise<Uint8Array> =>
    Promise.resolve(bytes.slice(start, start + length));
  const stored = await npyTensor({ path: `${path} (${member.name})`, bytes: bytes.length, read: within });
  return { stored: { ...stored, name: member.name }, bytes };
}

function inflated(path: string, { name, unpacked }: Member, packed: Uint8Array): Uint8Array {
  try {
    return inflateRawSync(packed, { maxOutputLength: Math.max(unpacked, 1) });
  } catch {
    return notNpz(path, `${name}, which cannot be unpacked to its ${unpacked} bytes`);
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function notNpz(path: string, found: string): never {
  return invalidFile(path, {
    found,
    expected: "a .npz file as numpy.savez writes it",
    help: "save the arrays with np.savez(path, in0=x, in1=w)",
  });
}
