/**
 * Files of one tensor as `numpy.save` writes them: a magic word, a version, the length of a header, the header as a
 * Python dict, and the elements. npy has no bfloat16 and no floats of 8 bits. Braid writes what ml_dtypes does: untyped
 * bytes, such as `V2`, for all but float8_e5m2. bfloat16 viewed as uint16 is read, too.
 */
import { type DType, dtypes } from "../../numerics/dtype.ts";
import { keysOf } from "../../support/invariant.ts";
import { invalidFile, requireElementBytes, type StoredTensor, type TensorFile } from "./stored-tensor.ts";

/** Without the byte order. */
const dtypeOf: ReadonlyMap<string, DType> = new Map([
  ...keysOf(dtypes).map((dtype): [string, DType] => [dtypes[dtype].names.numpy.slice(1), dtype]),
  ["u2", "bfloat16"],
]);

const magic = "\u0093NUMPY";
/** Of the magic word and the version. */
const preludeBytes = 8;
const latin1 = new TextDecoder("latin1");

/** The bytes before the elements, which then start at a multiple of 64. */
export function npyHeader(dtype: DType, shape: readonly number[]): Uint8Array {
  const extents = shape.length === 1 ? `${shape.join()},` : shape.join(", ");
  const dict = `{'descr': '${dtypes[dtype].names.numpy}', 'fortran_order': False, 'shape': (${extents}), }`;
  const before = preludeBytes + 2;
  const length = 64 * Math.ceil((before + dict.length + 1) / 64) - before;
  const text = `${magic}\u0001\u0000${String.fromCharCode(length % 256, length >> 8)}${dict.padEnd(length - 1)}\n`;
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/** Throws `tensor-file-invalid`. */
export function npyTensor(file: TensorFile): StoredTensor {
  const { path } = file;
  const { header, start } = readHeader(file);
  const entries = entriesOf(header) ?? notNpy(path, `the header ${header.trim().slice(0, 200)}`);
  const { order, extents } = entries;
  if (entries.descr.startsWith("[")) {
    const help = "save one field: np.save(path, array['field'])";
    return invalidFile(path, { found: "an array of records", expected: "elements of one dtype", help });
  }
  const descr = entries.descr.slice(1, -1);
  if (order === "True") {
    const help = "np.save(path, np.ascontiguousarray(array))";
    return invalidFile(path, { found: "Fortran order: columns first", expected: "C order: rows first", help });
  }
  if (descr.startsWith(">")) {
    const help = 'np.save(path, array.astype(array.dtype.newbyteorder("<")))';
    return invalidFile(path, { found: `${descr}, big-endian`, expected: `<${descr.slice(1)}, little-endian`, help });
  }
  const shape = (extents.match(/\d+/g) ?? []).map(Number);
  const dtype = /^[<|=]/.test(descr) ? (dtypeOf.get(descr.slice(1)) ?? null) : null;
  const stored: StoredTensor = { path, name: null, dtype, spelling: descr, shape, start };
  requireElementBytes(stored, file.bytes - start);
  return stored;
}

/** A key and its value in a Python dict as NumPy's reader takes it. A tuple of one extent has a comma. */
const extent = String.raw`\s*(?:0|[1-9]\d*)\s*`;
const values = String.raw`'[^'"]*'|"[^'"]*"|True|False|\(\s*\)|\((?:${extent},)+\s*\)|\((?:${extent},)+${extent}\)|\[.*\]`;
const entry = new RegExp(String.raw`\s*(['"])(\w+)\1\s*:\s*(${values})\s*(?:,\s*|$)`, "gsy");

/** The texts of the values of these keys, each of which the header has once; null for another header. */
function entriesOf(
  header: string,
): { readonly descr: string; readonly order: string; readonly extents: string } | null {
  const [, body] = /^\{(.*)\}$/s.exec(header.trim()) ?? [];
  if (body === undefined) return null;
  const entries = [...body.matchAll(entry)];
  if (entries.length !== 3 || entries.map(([text]) => text).join("") !== body) return null;
  const valueOf = (name: string, form: RegExp): string | undefined =>
    entries.find(([, , key, value = ""]) => key === name && form.test(value))?.[3];
  const descr = valueOf("descr", /^['"[]/);
  const order = valueOf("fortran_order", /^[TF]/);
  const extents = valueOf("shape", /^\(/);
  return descr === undefined || order === undefined || extents === undefined ? null : { descr, order, extents };
}

function readHeader({ path, read }: TensorFile): { readonly header: string; readonly start: number } {
  const prelude = read(0, preludeBytes + 4);
  const version = prelude[6] ?? 0;
  // Version 1 has a length of two bytes; 2 and 3 have four.
  const start = preludeBytes + (version === 1 ? 2 : 4);
  const isNpy =
    latin1.decode(prelude.subarray(0, magic.length)) === magicText && version >= 1 && version <= 3 && prelude[7] === 0;
  if (!isNpy || prelude.length < start) {
    return notNpy(path, prelude.length === 0 ? "an empty file" : "other bytes at the start of the file");
  }
  const length = prelude.subarray(preludeBytes, start).reduceRight((value, byte) => value * 256 + byte, 0);
  const header = read(start, length);
  if (header.length < length) return notNpy(path, "the end of the file within the header");
  return { header: latin1.decode(header), start: start + length };
}

/** TextDecoder's latin1 is windows-1252. */
const magicText = latin1.decode(Uint8Array.from(magic, (character) => character.charCodeAt(0)));

function notNpy(path: string, found: string): never {
  return invalidFile(path, {
    found,
    expected: "a .npy file as numpy.save writes it, of version 1.0 to 3.0",
    help: "save the array with np.save(path, array)",
  });
}
