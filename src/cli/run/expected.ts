/** `--inputs` and `--expect`: the arguments that a framework called a model with, and the results that it computed. */
import path from "node:path";
import type { Signature } from "../../compile/lower-all.ts";
import type { InputFile } from "../../compile/options/run.ts";
import { type Diagnostic, fail, DiagnosticError, type Place } from "../../diagnostics/diagnostic.ts";
import type { OutputCopy } from "../../executor/output-copies.ts";
import type { ImportedModel } from "../../import/model.ts";
import { type Sizes, shapeOf } from "../../ir/sizes.ts";
import { byDType, type DType, dtypes } from "../../numerics/dtype.ts";
import { type Tensor, elementsOf, positionOf, emptyTensor, tensorBytes } from "../../numerics/tensor/host-tensor.ts";
import { at } from "../../support/invariant.ts";
import { inflateRawSync } from "node:zlib";
import { regularSource } from "../../backends/regular-file.ts";
import { type ZipEntry, zipEntries } from "../../import/zip.ts";
import { nameOf } from "../../ir/origin.ts";
import { npyTensor } from "../tensor-files/npy.ts";
import { safetensorsTensors } from "../tensor-files/safetensors.ts";
import {
  invalidFile,
  readStored,
  type StoredTensor,
  whereReadable,
  withTensorFile,
} from "../tensor-files/stored-tensor.ts";
import { namesOfTensor } from "../tensor-files/tensor-names.ts";

/** The files that have all arguments of a call, and the others: those of a framework use its names and dtypes. */
export function wholeFiles(
  given: readonly InputFile[],
  model: ImportedModel | null,
): readonly [whole: readonly string[], single: readonly InputFile[]] {
  const isWhole = ({ name, file }: InputFile): boolean => {
    const extension = path.extname(file);
    return name === null && (extension === ".npz" || (extension === ".safetensors" && model !== null));
  };
  return [given.filter(isWhole).map(({ file }) => file), given.filter((each) => !isWhole(each))];
}

/**
 * By position, with the weights and constants of the model; the last of `files` that has an input gives it. Files that
 * have weights alone leave the arguments open. Throws `option-value` where the files lack an argument, or have no input.
 */
export async function inputsFrom(
  files: readonly string[],
  signature: Signature,
  model: ImportedModel | null,
  sizes: Sizes,
  given: ReadonlyMap<number, Tensor>,
): Promise<ReadonlyMap<number, Tensor>> {
  const own = (model?.inputs ?? []).flatMap(({ value }, i): [number, Tensor][] => (value === null ? [] : [[i, value]]));
  const names = namesFor(signature, model, "inputs");
  const found = new Map<number, Tensor>();
  for (const file of files) {
    const read = await namedTensors({ flag: "--inputs", file }, names, signature, signature.inputs, sizes);
    for (const [i, tensor] of read.entries()) if (tensor !== null) found.set(i, tensor);
  }
  const all = new Map([...own, ...found, ...given]);
  const isOfWeights = found.size > 0 && ![...found.keys()].some((i) => isArgument(model, i));
  const missing = files.length === 0 || isOfWeights ? undefined : names.find((_, i) => !all.has(i));
  if (missing !== undefined) {
    fail("option-value", `the file of --inputs has no tensor for input ${at(missing, 0)}`, {
      place: { kind: "option", text: `--inputs ${files.join(" --inputs ")}` },
      found: "none of its names",
      expected: [...new Set(missing)].join(", "),
      help: "save all arguments in order: np.savez(path, in0=x, in1=w), or take single ones with --inputs NAME=FILE",
    });
  }
  return all;
}

/** Whether an input is given by a run: weights and constants are no arguments. */
function isArgument(model: ImportedModel | null, i: number): boolean {
  const { role = null, value = null } = model?.inputs[i] ?? {};
  return role === null ? value === null : role === "argument";
}

/** What the file of `--expect` holds for an output; null where it has none. */
export interface ExpectedOutput {
  /** The output's name in messages. */
  readonly name: string;
  readonly tensor: Tensor | null;
}

/** Throws `option-value` for a file that has none of the outputs. */
export async function expectedOutputs(
  file: string,
  signature: Signature,
  model: ImportedModel | null,
  sizes: Sizes,
): Promise<readonly ExpectedOutput[]> {
  const names = namesFor(signature, model, "outputs");
  const found = await namedTensors({ flag: "--expect", file }, names, signature, signature.outputs, sizes);
  if (found.every((tensor) => tensor === null)) {
    fail("option-value", "the file of --expect has none of the outputs", {
      place: { kind: "option", text: `--expect ${file}` },
      found: "none of their names",
      expected: names.flat().join(", "),
      help: "save all results in order: np.savez(path, out0=y)",
    });
  }
  return found.map((tensor, i) => ({ name: names[i]?.[1] ?? at(at(names, i), 0), tensor }));
}

/**
 * How many round-offs of the dtype an element may be off, relative to its size, or that of the terms of its sum, and to
 * the size of the whole output. Orders of sums differ between a framework and Braid, and 16-bit floats round after every
 * op.
 */
const accepted: { readonly [D in DType]: number } = byDType(({ family, packed }) =>
  family !== "float" ? 0 : packed ? 16 : 256,
);

/** A row of the report. */
export interface Expectation {
  readonly name: string;
  /** Null where the file has no such output. */
  readonly largestError: number | null;
  readonly failure: Diagnostic | null;
}

/** `termsOf` gives the sizes of the terms of which an output is the sum. It is asked where elements differ without it. */
export function compareExpected(
  expected: readonly ExpectedOutput[],
  copies: readonly (readonly OutputCopy[])[],
  termsOf: (output: number) => readonly number[] | null = () => null,
): readonly Expectation[] {
  return expected.map(({ name, tensor }, i): Expectation => {
    if (tensor === null) return { name, largestError: null, failure: null };
    const compared = (terms: readonly number[] | null): Worst =>
      at(copies, i)
        .map((copy) => worstOf(copy.tensor, tensor, terms))
        .reduce((a, b) => (b.ratio > a.ratio ? b : a));
    const own = compared(null);
    const worst = own.ratio > 1 && own.bound > 0 ? compared(termsOf(i)) : own;
    return { name, largestError: worst.error, failure: worst.ratio > 1 ? failureOf(name, tensor, worst) : null };
  });
}

interface Worst {
  readonly index: number;
  readonly actual: number;
  readonly expected: number;
  readonly error: number;
  readonly bound: number;
  /** The error over its bound; infinite for one of an exact dtype, and where only one of the two is NaN. */
  readonly ratio: number;
}

function worstOf(actual: Tensor, expected: Tensor, terms: readonly number[] | null): Worst {
  const [own, given] = [elementsOf(actual.dtype, actual.data), elementsOf(expected.dtype, expected.data)];
  let squares = 0;
  for (let i = 0; i < given.length; i++) {
    const element = Number(given.get(i));
    if (Number.isFinite(element)) squares += element * element;
  }
  const typical = given.length === 0 ? 0 : Math.sqrt(squares / given.length);
  const unit = accepted[actual.dtype] * dtypes[actual.dtype].epsilon;
  let worst: Worst = { index: 0, actual: 0, expected: 0, error: 0, bound: 0, ratio: 0 };
  for (let i = 0; i < given.length; i++) {
    const [a, e] = [Number(own.get(i)), Number(given.get(i))];
    if (Object.is(a, e) || a === e) continue;
    const [error, bound] = [Math.abs(a - e), unit * (Math.max(Math.abs(e), terms?.[i] ?? 0) + typical)];
    const ratio = Number.isFinite(error) && bound > 0 ? error / bound : Infinity;
    if (ratio > worst.ratio) worst = { index: i, actual: a, expected: e, error, bound, ratio };
  }
  return worst;
}

function failureOf(name: string, { shape }: Tensor, { index, actual, expected, error, bound }: Worst): Diagnostic {
  return {
    code: "check-failed",
    message: "an output differs from the file of --expect",
    place: { kind: "tensor", text: `${name}, element [${positionOf(index, shape).join(", ")}]` },
    found: `${String(actual)} (off by ${error.toPrecision(3)})`,
    expected: `${String(expected)} (within ${bound.toPrecision(3)})`,
    help: "pass the results of the same model with the same arguments; if they are, please report the model",
  };
}

/*
 * `--inputs` and `--expect`: files that hold all inputs or outputs of a model by name, in the dtypes of the framework:
 * .safetensors, and .npz as `numpy.savez` writes it, a zip archive with a .npy file for each array, stored or deflated.
 * Nothing is unpacked that is larger than its entry says.
 */

/** The option that names the file, and what its tensors are. */
interface NamedFile {
  readonly flag: "--inputs" | "--expect";
  readonly file: string;
}

/** The names that files may use for each input or output, of which the first is shown. */
function namesFor(
  { tensors, inputs, outputs }: Signature,
  model: ImportedModel | null,
  side: "inputs" | "outputs",
): readonly (readonly string[])[] {
  const isInput = side === "inputs";
  const ids = isInput ? inputs : outputs;
  const counted = [...ids.keys()].filter((i) => !isInput || isArgument(model, i));
  return ids.map((id, i) => {
    const tensor = at(tensors, id);
    const own = isInput ? (model?.inputs[i]?.names ?? []) : [model?.outputs[i] ?? []].flat();
    const single = counted.length === 1 && counted[0] === i ? [isInput ? "x" : "y"] : [];
    return [`${isInput ? "in" : "out"}${i}`, ...own, nameOf(tensor) ?? [], ...namesOfTensor(tensor), ...single].flat();
  });
}

/**
 * The tensors of the file for each list of names, with the given dtypes; null where the file has none of the names.
 * Throws `option-value`, `file-unreadable`, `tensor-file-invalid`, `input-shape`.
 */
async function namedTensors(
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

function arrayIn(bytes: Uint8Array, path: string, name: string): Tensor {
  const read = (start: number, length: number): Uint8Array => bytes.slice(start, start + length);
  const stored = { ...npyTensor({ path, bytes: bytes.length, read }), name };
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
