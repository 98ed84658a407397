/** `--inputs`: finds the tensors that files give for inputs, checks what their headers say, and reads them. */
import path from "node:path";
import type { Signature } from "../../compile/lower-all.ts";
import type { InputFile } from "../../compile/options/run.ts";
import { fail, type Place } from "../../diagnostics/diagnostic.ts";
import { type Tensor as IrTensor, withoutReductions } from "../../ir/domain.ts";
import { printScalar } from "../../ir/scalar/scalar.ts";
import { shapeOf, type Sizes } from "../../ir/sizes.ts";
import type { Tensor } from "../../numerics/tensor/host-tensor.ts";
import { at } from "../../support/invariant.ts";
import { suggestion } from "../../support/wording.ts";
import { npyTensor } from "./npy.ts";
import { safetensorsTensors } from "./safetensors.ts";
import { readStored, type StoredTensor, withTensorFile } from "./stored-tensor.ts";
import { namesOfTensor } from "./tensor-names.ts";

/** By position among the program's inputs. */
export type InputFiles = ReadonlyMap<number, StoredTensor>;

/**
 * The tensor in a file for each input that has one, before elements are read. Throws `option-value`, `option-unknown`,
 * `file-unreadable`, `tensor-file-invalid` and `input-shape`.
 */
export async function findInputFiles(signature: Signature, given: readonly InputFile[]): Promise<InputFiles> {
  const found = new Map<number, StoredTensor>();
  for (const input of given) {
    for (const [name, stored] of await tensorsIn(input)) {
      const position = inputNamed(signature, name, input);
      const earlier = found.get(position);
      if (earlier !== undefined) givenTwice(name, earlier, stored);
      requireForm(at(signature.tensors, at(signature.inputs, position)), name, stored);
      found.set(position, stored);
    }
  }
  return found;
}

/** The tensors of a file that the option takes, by the names of inputs. */
async function tensorsIn({ name, file }: InputFile): Promise<readonly (readonly [string, StoredTensor])[]> {
  const extension = path.extname(file);
  if (extension === ".npy") {
    if (name === null) nameMissing(file);
    return [[name, await withTensorFile(file, npyTensor)]];
  }
  if (extension !== ".safetensors") unknownFormat(file);
  const stored = await withTensorFile(file, safetensorsTensors);
  if (name === null) {
    return stored.length === 0 ? noTensors(file) : stored.map((each) => [each.name ?? "", each]);
  }
  const own = stored.find((each) => each.name === name) ?? (stored.length === 1 ? stored[0] : undefined);
  return own === undefined ? notInFile(name, file, stored) : [[name, own]];
}

function inputNamed({ tensors, inputs }: Signature, name: string, { file }: InputFile): number {
  const names = inputs.map((id) => namesOfTensor(at(tensors, id)));
  // A constant may be called T1.
  const numbered = names.findIndex(([number]) => number === name);
  const position = numbered < 0 ? names.findIndex((each) => each.includes(name)) : numbered;
  if (position >= 0) return position;
  const known = names.flat();
  return fail("option-unknown", `the program has no input ${name}`, {
    place: inputPlace(file),
    found: name,
    expected: known.length === 0 ? "no --inputs, since the program has no inputs" : `one of ${known.join(", ")}`,
    help: suggestion(name, known, "name inputs only; NAME=FILE takes a single tensor from a file"),
  });
}

const inputPlace = (file: string): Place => ({ kind: "option", text: `--inputs ${file}` });

/** Throws `input-shape` for another dtype or number of axes. */
function requireForm(tensor: IrTensor, name: string, { path: file, dtype, spelling, shape }: StoredTensor): void {
  const axes = withoutReductions(tensor.domain.logical).map(({ extent }) => printScalar(extent));
  if (dtype === tensor.dtype && shape.length === axes.length) return;
  fail("input-shape", `the file of input ${name} has another ${dtype === tensor.dtype ? "number of axes" : "dtype"}`, {
    place: { kind: "file", path: file },
    found: `${dtype ?? "a dtype that Braid does not have"} (${spelling}) [${shape.join(", ")}]`,
    expected: `${tensor.dtype} [${axes.join(", ")}]`,
    help: "convert the array and save it again, or change the input of the program",
  });
}

/**
 * The sizes of symbolic extents that the files have, and the given ones. Throws `size-mismatch` if they contradict each
 * other.
 */
export function sizesWithFiles(
  { tensors, inputs }: Signature,
  files: InputFiles,
  given: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const sizes = new Map(given);
  const sources = new Map([...given.keys()].map((name) => [name, "--sizes"]));
  for (const [position, { path: file, shape }] of files) {
    withoutReductions(at(tensors, at(inputs, position)).domain.logical).forEach(({ extent }, axis) => {
      if (extent.kind !== "symbol") return;
      const size = at(shape, axis);
      const other = sizes.get(extent.name);
      if (other !== undefined && other !== size) {
        fail("size-mismatch", `${extent.name} has two sizes`, {
          place: { kind: "file", path: file },
          found: `${size} along axis ${axis}, and ${other} from ${sources.get(extent.name)}`,
          expected: `one size for all axes of extent ${extent.name}`,
          help: "give inputs whose shapes agree, and leave out --sizes of extents that files have",
        });
      }
      sizes.set(extent.name, size);
      sources.set(extent.name, file);
    });
  }
  return sizes;
}

/** Throws `input-shape`. */
export function requireFileShapes({ tensors, inputs }: Signature, files: InputFiles, sizes: Sizes): void {
  for (const [position, { path: file, shape }] of files) {
    const tensor = at(tensors, at(inputs, position));
    const expected = shapeOf(tensor, sizes);
    if (expected.every((extent, axis) => extent === shape[axis] && extent > 0)) continue;
    fail("input-shape", `the file of input ${at(namesOfTensor(tensor), 0)} has another shape`, {
      place: { kind: "file", path: file },
      found: `[${shape.join(", ")}]`,
      expected: `[${withoutReductions(tensor.domain.logical)
        .map(({ extent }) => printScalar(extent))
        .join(", ")}], with extents of at least 1`,
      help: "save an array of this shape, or change the program's parameters with --set",
    });
  }
}

/** Whole tensors, by position. Throws `file-unreadable`. */
export async function readInputFiles(
  { tensors, inputs }: Signature,
  files: InputFiles,
): Promise<ReadonlyMap<number, Tensor>> {
  const read = new Map<number, Tensor>();
  for (const [position, stored] of files) {
    read.set(position, await readStored(stored, at(tensors, at(inputs, position)).dtype));
  }
  return read;
}

function givenTwice(name: string, earlier: StoredTensor, { path: file }: StoredTensor): never {
  return fail("option-value", `input ${name} is given twice`, {
    place: inputPlace(file),
    found: earlier.path === file ? `twice from ${file}` : `from ${earlier.path} and from ${file}`,
    expected: "one file per input",
    help: "remove one of the two, or take single tensors with NAME=FILE",
  });
}

function nameMissing(file: string): never {
  return fail("option-value", "a .npy file does not say which input it is", {
    place: inputPlace(file),
    found: file,
    expected: "NAME=FILE",
    help: `write --inputs T0=${file} with the name of the input`,
  });
}

function unknownFormat(file: string): never {
  return fail("option-value", "the file of an input has an unknown format", {
    place: inputPlace(file),
    found: path.extname(file) === "" ? "no extension" : `a file that ends in ${path.extname(file)}`,
    expected: "a file that ends in .npy or .safetensors, or in .npz without NAME=",
    help: "save the array with np.save, or the tensors with safetensors' save_file",
  });
}

function noTensors(file: string): never {
  return fail("option-value", "the file of inputs has no tensors", {
    place: inputPlace(file),
    found: "a header without tensors",
    expected: "a tensor for each input that the file is to give",
    help: "save the tensors by the names of the inputs",
  });
}

function notInFile(name: string, file: string, stored: readonly StoredTensor[]): never {
  const names = stored.map((each) => each.name ?? "");
  return fail("option-value", `the file has no tensor ${name}`, {
    place: inputPlace(`${name}=${file}`),
    found: names.length === 0 ? "no tensors" : names.join(", "),
    expected: `a tensor ${name}, or one tensor only`,
    help: "save the tensor by the name of the input",
  });
}
