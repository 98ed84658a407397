/** A tensor in a file: what its header says, and how its elements are read. npy.ts and safetensors.ts read headers. */
import { elementCount, emptyTensor, type Tensor, tensorBytes } from "../../numerics/tensor/host-tensor.ts";
import { regularSource } from "../../backends/regular-file.ts";
import { type Diagnostic, DiagnosticError, fail } from "../../diagnostics/diagnostic.ts";
import { type DType, dtypes } from "../../numerics/dtype.ts";
import { systemReason } from "../../support/wording.ts";

export interface StoredTensor {
  readonly path: string;
  /** Null in a format whose tensors have no names. */
  readonly name: string | null;
  /** Null for one that Braid does not have. */
  readonly dtype: DType | null;
  /** The dtype as the format spells it. */
  readonly spelling: string;
  readonly shape: readonly number[];
  /** The first byte of the elements. They are row-major and little-endian. */
  readonly start: number;
}

/** `read` gives fewer bytes at the end of the file. */
export interface TensorFile {
  readonly path: string;
  readonly bytes: number;
  readonly read: (start: number, length: number) => Uint8Array;
}

/** Throws `file-unreadable`, and what `work` throws. */
export async function withTensorFile<T>(path: string, work: (file: TensorFile) => T): Promise<T> {
  return whereReadable(path, async () => {
    const { size, read } = await regularSource(path);
    return work({ path, bytes: size, read });
  });
}

/** Elements of bool are 0 or 1 afterwards. Throws `file-unreadable`. */
export async function readStored({ path, shape, start }: StoredTensor, dtype: DType): Promise<Tensor> {
  const tensor = emptyTensor(dtype, shape);
  await whereReadable(path, async () => (await regularSource(path)).readInto(tensorBytes(tensor), start));
  if (tensor.dtype === "bool") tensor.data.forEach((byte, i) => (tensor.data[i] = byte === 0 ? 0 : 1));
  return tensor;
}

/** Throws `file-unreadable` for the system's errors. */
export async function whereReadable<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof DiagnosticError) throw error;
    return unreadable(path, systemReason(error));
  }
}

function unreadable(path: string, found: string): never {
  return fail("file-unreadable", "the file of an input cannot be read", {
    place: { kind: "file", path },
    found,
    expected: "a readable file that ends in .npy or .safetensors",
    help: "correct the path after --inputs",
  });
}

/** Throws `tensor-file-invalid`. */
export function invalidFile(path: string, about: Required<Pick<Diagnostic, "found" | "expected" | "help">>): never {
  return fail("tensor-file-invalid", "the file of an input is damaged, or in a form that Braid does not read", {
    place: { kind: "file", path },
    ...about,
  });
}

/** Throws `tensor-file-invalid` unless there are as many bytes as the shape needs. */
export function requireElementBytes(stored: StoredTensor, bytes: number): void {
  const { path, name, dtype, shape } = stored;
  if (dtype === null) return;
  const needed = elementCount(shape) * dtypes[dtype].bytes;
  if (bytes === needed) return;
  invalidFile(path, {
    found: `${bytes} bytes of elements${name === null ? "" : ` for ${name}`}`,
    expected: `${needed} bytes for ${dtype} [${shape.join(", ")}]`,
    help: bytes < needed ? "write or copy the file again: its end is missing" : "write the tensor to a file of its own",
  });
}
