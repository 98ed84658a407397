/**
 * Files of named tensors in the format of Hugging Face: the length of a header as eight bytes, the header as JSON, and
 * the elements of all tensors.
 */
import * as v from "valibot";
import { dtypes, dtypesBy } from "../../numerics/dtype.ts";
import { type Tensor, tensorBytes } from "../../numerics/tensor/host-tensor.ts";
import { parseJson } from "../../support/json-document.ts";
import { invalidFile, requireElementBytes, type StoredTensor, type TensorFile } from "./stored-tensor.ts";

const dtypeOf = dtypesBy("safetensors");

/** Those of the format that Braid does not have. */
const others = "C64 F4 F6_E2M3 F6_E3M2 F8_E4M3FNUZ F8_E5M2FNUZ F8_E8M0 I8 I16 U8 U16 U32 U64".split(" ");

const lengthBytes = 8;
/** The format allows no longer header. */
const mostHeaderBytes = 100_000_000;
/** Not a tensor: text about the file. */
const metadata = "__metadata__";

const whole = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const entry = v.object({
  dtype: v.picklist([...dtypeOf.keys(), ...others]),
  shape: v.array(whole),
  data_offsets: v.strictTuple([whole, whole]),
});

/** The bytes before the elements, which follow in the order of `tensors`. */
export function safetensorsHeader(tensors: ReadonlyMap<string, Tensor>): Uint8Array {
  let end = 0;
  const described = [...tensors].map(([name, tensor]): [string, object] => {
    const start = end;
    end += tensorBytes(tensor).length;
    return [name, { dtype: dtypes[tensor.dtype].names.safetensors, shape: tensor.shape, data_offsets: [start, end] }];
  });
  const text = JSON.stringify(Object.fromEntries(described));
  const json = new TextEncoder().encode(text.padEnd(8 * Math.ceil(text.length / 8)));
  const bytes = new Uint8Array(lengthBytes + json.length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
  bytes.set(json, lengthBytes);
  return bytes;
}

/** In the order of the header. Throws `tensor-file-invalid`. */
export function safetensorsTensors({ path, bytes, read }: TensorFile): readonly StoredTensor[] {
  const prelude = read(0, lengthBytes);
  if (prelude.length < lengthBytes) notSafetensors(path, "the end of the file within the first eight bytes");
  const length = Number(new DataView(prelude.buffer).getBigUint64(0, true));
  if (length > mostHeaderBytes) notSafetensors(path, `a header of ${length} bytes`);
  const first = lengthBytes + length;
  if (first > bytes) notSafetensors(path, "the end of the file within the header");
  const entries = entriesOf(path, read(lengthBytes, length));
  const tensors = entries.map(([name, { dtype, shape, data_offsets }]) => {
    const [start, end] = data_offsets;
    const type = dtypeOf.get(dtype) ?? null;
    const tensor: StoredTensor = { path, name, dtype: type, spelling: dtype, shape, start: first + start };
    requireElementBytes(tensor, Math.max(0, Math.min(end, bytes - first) - start));
    return tensor;
  });
  requireNoHoles(path, entries, bytes - first);
  return tensors;
}

type Entries = readonly (readonly [name: string, entry: v.InferOutput<typeof entry>])[];

function entriesOf(path: string, json: Uint8Array): Entries {
  const header = objectOf(path, json);
  return Object.entries(header).flatMap(([name, value]): Entries => {
    if (name === metadata) {
      if (isTexts(value)) return [];
      return notSafetensors(path, `a header whose ${metadata} does not map texts to texts`);
    }
    const { success, output } = v.safeParse(entry, value);
    return success ? [[name, output]] : notSafetensors(path, `a header whose entry ${name} is not a tensor's`);
  });
}

function objectOf(path: string, json: Uint8Array): object {
  try {
    const header = parseJson(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(json));
    if (typeof header === "object" && header !== null && !Array.isArray(header)) return header;
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
    return notSafetensors(path, `a header that is not JSON: ${error.message}`);
  }
  return notSafetensors(path, "a header that is not an object");
}

function isTexts(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((each) => typeof each === "string");
}

/** The tensors' bytes follow one another from the first to the last. A damaged or forged header hides bytes otherwise. */
function requireNoHoles(path: string, entries: Entries, bytes: number): void {
  const parts = entries.map(
    ([
      name,
      {
        data_offsets: [start, end],
      },
    ]) => ({ name, start, end }),
  );
  let reached = 0;
  for (const { name, start, end } of parts.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
    if (start > reached) notSafetensors(path, `${start - reached} bytes of no tensor before ${name}`);
    if (start < reached) notSafetensors(path, `${name}, which has bytes of another tensor`);
    if (end < start) notSafetensors(path, `${name}, which ends before it starts`);
    reached = end;
  }
  if (reached < bytes) notSafetensors(path, `${bytes - reached} bytes of no tensor at the end of the file`);
  if (reached > bytes) notSafetensors(path, `the end of the file ${reached - bytes} bytes before that of its tensors`);
}

function notSafetensors(path: string, found: string): never {
  return invalidFile(path, {
    found,
    expected: "a .safetensors file: eight bytes of length, a header as JSON, the elements",
    help: "save the tensors with safetensors' save_file(tensors, path)",
  });
}
