/**
 * Files of named tensors in the format of Hugging Face: the length of a header as eight bytes, the header as JSON, and
 * the elements of all tensors.
 */
import * as v from "valibot";
import { type DType, isDType } from "../../numerics/dtype.ts";
import { type Tensor, tensorBytes } from "../../numerics/tensor/host-tensor.ts";
import { invalidFile, requireElementBytes, type StoredTensor, type TensorFile } from "./stored-tensor.ts";

const spellings: { readonly [D in DType]: string } = {
  double: "F64",
  float: "F32",
  half: "F16",
  bfloat16: "BF16",
  int: "I32",
  int64: "I64",
  bool: "BOOL",
};

const dtypeOf: ReadonlyMap<string, DType> = new Map(
  Object.entries(spellings).flatMap(([dtype, text]): [string, DType][] => (isDType(dtype) ? [[text, dtype]] : [])),
);

const lengthBytes = 8;
/** The format allows no longer header. */
const mostHeaderBytes = 100_000_000;
/** Not a tensor: text about the file. */
const metadata = "__metadata__";

const whole = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const entries = v.record(
  v.string(),
  v.object({ dtype: v.string(), shape: v.array(whole), data_offsets: v.tuple([whole, whole]) }),
);

/** The bytes before the elements, which follow in the order of `tensors`. */
export function safetensorsHeader(tensors: ReadonlyMap<string, Tensor>): Uint8Array {
  let end = 0;
  const described = [...tensors].map(([name, tensor]): [string, object] => {
    const start = end;
    end += tensorBytes(tensor).length;
    return [name, { dtype: spellings[tensor.dtype], shape: tensor.shape, data_offsets: [start, end] }];
  });
  const text = JSON.stringify(Object.fromEntries(described));
  const json = new TextEncoder().encode(text.padEnd(8 * Math.ceil(text.length / 8)));
  const bytes = new Uint8Array(lengthBytes + json.length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
  bytes.set(json, lengthBytes);
  return bytes;
}

/** In the order of the header. Throws `tensor-file-invalid`. */
export async function safetensorsTensors({ path, bytes, read }: TensorFile): Promise<readonly StoredTensor[]> {
  const prelude = await read(0, lengthBytes);
  if (prelude.length < lengthBytes) notSafetensors(path, "the end of the file within the first eight bytes");
  const length = Number(new DataView(prelude.buffer).getBigUint64(0, true));
  if (length > mostHeaderBytes) notSafetensors(path, `a header of ${length} bytes`);
  const first = lengthBytes + length;
  if (first > bytes) notSafetensors(path, "the end of the file within the header");
  const header = parsed(path, await read(lengthBytes, length));
  const stored = Object.entries(header).map(
    ([
      name,
      {
        dtype,
        shape,
        data_offsets: [start, end],
      },
    ]) => {
      const tensor: StoredTensor = {
        path,
        name,
        dtype: dtypeOf.get(dtype) ?? null,
        spelling: dtype,
        shape,
        start: first + start,
      };
      requireElementBytes(tensor, Math.min(end, bytes - first) - start);
      return tensor;
    },
  );
  return stored;
}

function parsed(path: string, json: Uint8Array): v.InferOutput<typeof entries> {
  try {
    const header: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(json));
    if (typeof header !== "object" || header === null) return notSafetensors(path, "a header that is not an object");
    const { [metadata]: _, ...tensors } = Object.fromEntries<unknown>(Object.entries(header));
    const result = v.safeParse(entries, tensors);
    if (result.success) return result.output;
    const [name] = (result.issues[0].path ?? []).map(({ key }) => String(key));
    return notSafetensors(path, `a header whose entry ${name} is not a tensor's`);
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
    return notSafetensors(path, "a header that is not JSON");
  }
}

function notSafetensors(path: string, found: string): never {
  return invalidFile(path, {
    found,
    expected: "a .safetensors file: eight bytes of length, a header as JSON, the elements",
    help: "save the tensors with safetensors' save_file(tensors, path)",
  });
}
