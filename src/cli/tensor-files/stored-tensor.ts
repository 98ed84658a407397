/** A tensor in a file: what its header says, and how its elements are read. npy.ts and safetensors.ts read headers. */
import { elementCount, emptyTensor, type Tensor, tensorBytes } from "../../numerics/tensor/host-tensor.ts";
import type { FileHandle } from "node:fs/promises";
import { withRegularFile } from "../../backends/regular-file.ts";
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

/** An open file. `read` gives fewer bytes at the end of the file. */
export interface TensorFile {
  readonly path: string;
  readonly bytes: number;
  readonly read: (start: number, length: number) => Promise<Uint8Array>;
}

/** Throws `file-unreadable`, and what `work` throws. */
export async function withTensorFile<T>(path: string, work: (file: TensorFile) => Promise<T>): Promise<T> {
  return withOpen(path, (handle, bytes) => {
    const read = async (start: number, length: number): Promise<Uint8Array> => {
      const into = new Uint8Array(Math.max(0, Math.min(length, bytes - start)));
      await readInto(handle, into, start);
      return into;
    };
    return work({ path, bytes, read });
  });
}

/** Elements of bool are 0 or 1 afterwards. Throws `file-unreadable`. */
export async function readStored({ path, shape, start }: StoredTensor, dtype: DType): Promise<Tensor> {
  const tensor = emptyTensor(dtype, shape);
  await withOpen(path, (handle) => readInto(handle, tensorBytes(tensor), start));
  if (tensor.dtype === "bool") tensor.data.forEach((byte, i) => (tensor.data[i] = byte === 0 ? 0 : 1));
  return tensor;
}

/** Node reads at most 2 GiB at once. */
const pieceBytes = 2 ** 30;

async function readInto(handle: FileHandle, into: Uint8Array, start: number): Promise<void> {
  for (let done = 0; done < into.length;) {
    const { bytesRead } = await handle.read(into, done, Math.min(pieceBytes, into.length - done), start + done);
    if (bytesRead === 0) throw new Error("EIO: the file became shorter while it was read");
    done += bytesRead;
  }
}

function withOpen<T>(path: string, work: (handle: FileHandle, bytes: number) => Promise<T>): Promise<T> {
  return whereReadable(path, () => withRegularFile(path, work));
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
