/** `--out` of `braid run`: writes the whole outputs of a run. */
import { access, constants, mkdir, stat } from "node:fs/promises";
import path from "node:path";
import type { Options } from "../../compile/options.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { type Tensor, tensorBytes } from "../../numerics/tensor/host-tensor.ts";
import { systemReason } from "../../support/wording.ts";
import { replaceFile } from "../terminal/output-file.ts";
import { npyHeader } from "./npy.ts";
import { safetensorsHeader } from "./safetensors.ts";

/** Where the outputs go: a folder of .npy files, or one .safetensors file. */
interface OutputPlace {
  readonly kind: "folder" | "file";
  readonly path: string;
}

/**
 * Where to write the outputs; null if they are not to be written. Makes the folder if it does not exist. Throws
 * `file-unwritable`. Call it before the run, which may be long.
 */
export async function requireOutputPlace({ outputDir }: Options<"outputDir">): Promise<OutputPlace | null> {
  if (outputDir === undefined) return null;
  const isFile = outputDir.endsWith(".safetensors");
  const folder = isFile ? path.dirname(outputDir) : outputDir;
  const failed = isFile ? null : await mkdir(folder).catch((error: unknown) => error);
  const found = await stat(folder).catch((error: unknown) => unwritable(outputDir, systemReason(failed ?? error)));
  if (!found.isDirectory()) unwritable(outputDir, "not a folder");
  await access(folder, constants.W_OK).catch((error: unknown) => unwritable(outputDir, systemReason(error)));
  return { kind: isFile ? "file" : "folder", path: outputDir };
}

/** Answers with the paths. `outputs`: by name. Throws `file-unwritable`. */
export async function writeOutputFiles(
  place: OutputPlace,
  outputs: ReadonlyMap<string, Tensor>,
): Promise<readonly string[]> {
  const files = place.kind === "folder" ? npyFiles(place.path, outputs) : safetensorsFile(place.path, outputs);
  for (const [file, pieces] of files) {
    await replaceFile(file, pieces).catch((error: unknown) =>
      unwritable(place.path, `${file}: ${systemReason(error)}`),
    );
  }
  return files.map(([file]) => file);
}

type Files = readonly (readonly [string, Iterable<Uint8Array>])[];

/** Names of tensors may have characters that names of files do not. */
function npyFiles(folder: string, outputs: ReadonlyMap<string, Tensor>): Files {
  return [...outputs].map(([name, tensor]) => [
    path.join(folder, `${name.replaceAll(/[^\w.-]/g, "_")}.npy`),
    pieces(npyHeader(tensor.dtype, tensor.shape), [tensor]),
  ]);
}

function safetensorsFile(file: string, outputs: ReadonlyMap<string, Tensor>): Files {
  return [[file, pieces(safetensorsHeader(outputs), [...outputs.values()])]];
}

/** Node writes at most 2 GiB at once. */
const pieceBytes = 64 * 2 ** 20;

function* pieces(header: Uint8Array, tensors: readonly Tensor[]): Iterable<Uint8Array> {
  yield header;
  for (const tensor of tensors) {
    const bytes = tensorBytes(tensor);
    for (let start = 0; start < bytes.length; start += pieceBytes) yield bytes.subarray(start, start + pieceBytes);
  }
}

function unwritable(given: string, found: string): never {
  return fail("file-unwritable", "the outputs cannot be written", {
    place: { kind: "option", text: `--out ${given}` },
    found,
    expected: "a folder that can be written to, or a new name in such a folder",
    help: "make the folder above it, or name another one",
  });
}
