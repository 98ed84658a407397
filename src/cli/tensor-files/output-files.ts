/** `--output-dir`: writes the whole outputs of a run. */
import { access, constants, mkdir, stat } from "node:fs/promises";
import path from "node:path";
import type { Options } from "../../compile/options.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { type Tensor, tensorBytes } from "../../numerics/tensor/host-tensor.ts";
import { systemReason } from "../../support/system-reason.ts";
import { replaceFile } from "../terminal/replace-file.ts";
import { npyHeader } from "./npy.ts";
import { safetensorsHeader } from "./safetensors.ts";

type Format = NonNullable<Options<"outputFormat">["outputFormat"]>;

/**
 * The folder and format of the outputs; null if none are to be written. Makes the folder if it does not exist. Throws
 * `file-unwritable` and `option-value`. Call it before the run, which may be long.
 */
export async function requireOutputFolder({
  outputDir: folder,
  outputFormat: format,
}: Options<"outputDir" | "outputFormat">): Promise<OutputFolder | null> {
  if (folder === undefined) {
    if (format !== undefined) formatAlone(format);
    return null;
  }
  const failed = await mkdir(folder).catch((error: unknown) => error);
  const found = await stat(folder).catch(() => unwritable(folder, systemReason(failed)));
  if (!found.isDirectory()) unwritable(folder, "not a folder");
  await access(folder, constants.W_OK).catch((error: unknown) => unwritable(folder, systemReason(error)));
  return { folder, format: format ?? "npy" };
}

interface OutputFolder {
  readonly folder: string;
  readonly format: Format;
}

/** Answers with the paths. `outputs`: by name. Throws `file-unwritable`. */
export async function writeOutputFiles(
  { folder, format }: OutputFolder,
  outputs: ReadonlyMap<string, Tensor>,
): Promise<readonly string[]> {
  const files = format === "npy" ? npyFiles(outputs) : safetensorsFile(outputs);
  const written: string[] = [];
  for (const [name, pieces] of files) {
    const file = path.join(folder, name);
    await replaceFile(file, pieces).catch((error: unknown) => unwritable(folder, `${file}: ${systemReason(error)}`));
    written.push(file);
  }
  return written;
}

type Files = readonly (readonly [string, Iterable<Uint8Array>])[];

/** Names of tensors may have characters that names of files do not. */
function npyFiles(outputs: ReadonlyMap<string, Tensor>): Files {
  return [...outputs].map(([name, tensor]) => [
    `${name.replaceAll(/[^\w.-]/g, "_")}.npy`,
    pieces(npyHeader(tensor.dtype, tensor.shape), [tensor]),
  ]);
}

function safetensorsFile(outputs: ReadonlyMap<string, Tensor>): Files {
  return [["outputs.safetensors", pieces(safetensorsHeader(outputs), [...outputs.values()])]];
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

function formatAlone(format: Format): never {
  return fail({
    code: "option-value",
    message: "--output-format says how files are written, and none are to be written",
    place: { kind: "option", text: "--output-format" },
    found: `--output-format ${format} without --output-dir`,
    expected: "--output-dir DIR with it",
    help: "add --output-dir, or leave --output-format out",
  });
}

function unwritable(folder: string, found: string): never {
  return fail({
    code: "file-unwritable",
    message: "the outputs cannot be written",
    place: { kind: "option", text: `--output-dir ${folder}` },
    found,
    expected: "a folder that can be written to, or a new name in such a folder",
    help: "make the folder above it, or name another one",
  });
}
