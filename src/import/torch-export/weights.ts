/**
 * Parameters, buffers and constants of a .pt2 file: a JSON document says which entry has the storage of each and how it
 * lies there. Storages are raw bytes. A pickled payload is refused: reading one runs code.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import { type DType, dtypes } from "../../numerics/dtype.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../../numerics/tensor/host-tensor.ts";
import { at } from "../../support/invariant.ts";
import { field, fieldsIn, type Json, jsonPlaceText, textIn, wrongValue } from "../json.ts";
import { type Archive, parseDocument } from "./archive.ts";
import { readMeta, type Size, type TensorMeta, torchDTypes, type TorchDType } from "./graph.ts";

export interface WeightPayload {
  readonly meta: TensorMeta;
  /** The values; null of a model that was exported without them (fake tensors). */
  readonly read: () => Tensor | null;
}

/** By name. `kind` is the folder of the archive. Throws `model-invalid`, `model-unsupported`. */
export function readPayloads(
  archive: Archive,
  kind: "weights" | "constants",
  model: string,
): ReadonlyMap<string, WeightPayload> {
  const entry = `data/${kind}/${model}_${kind}_config.json`;
  const document = archive.entries.get(entry);
  if (document === undefined) return new Map();
  const config = field(parseDocument(document, archive.path, entry), "config");
  return new Map(fieldsIn(config).map(([name, json]) => [name, payloadOf(archive, kind, name, json)]));
}

function payloadOf(archive: Archive, kind: string, name: string, json: Json): WeightPayload {
  if (field(json, "use_pickle").value === true) {
    fail("model-unsupported", `${name} is pickled`, {
      place: { kind: "file", path: jsonPlaceText(json) },
      found: "a payload in Python's pickle format, which only Python reads safely",
      expected: "raw bytes, as torch.export.save writes plain tensors",
      help: `make ${name} a plain torch.Tensor: tensor subclasses and custom objects are pickled`,
    });
  }
  const meta = readMeta(field(json, "tensor_meta"));
  const file = `data/${kind}/${textIn(field(json, "path_name"))}`;
  const storage = archive.entries.get(file);
  if (storage === undefined) return wrongValue(field(json, "path_name"), `the name of an entry of data/${kind}`);
  // Only an empty tensor and a fake one have no bytes.
  if (storage.size === 0 && !meta.sizes.includes(0)) return { meta, read: () => null };
  const dtype = realDType(meta.dtype);
  if (dtype === null) return { meta, read: () => unreadDType(name, meta.dtype.name, json) };
  const form = realForm(meta);
  const last = form.shape.includes(0)
    ? -1
    : form.shape.reduce((sum, extent, axis) => sum + (extent - 1) * at(form.strides, axis), form.offset);
  if ((last + 1) * dtypes[dtype].bytes > storage.size) {
    return wrongValue(field(json, "tensor_meta"), `a tensor within the ${storage.size} bytes of ${file}`);
  }
  return { meta, read: () => stridedCopy(emptyTensor(dtype, form.shape), storage.read(), form) };
}

/** The dtype of a real tensor, or of the two parts of a complex one, which have an axis of their own at the end. */
export function realDType({ name, braid }: TorchDType): DType | null {
  return isComplex({ name, braid }) ? (name === "complex64" ? "float" : "double") : braid;
}

export function isComplex({ name }: TorchDType): boolean {
  return name === "complex64" || name === "complex128";
}

function realForm({ dtype, sizes, strides, offset }: TensorMeta): Strided {
  const own = { shape: sizes.map(known), strides: strides.map(known), offset: known(offset) };
  if (!isComplex(dtype)) return own;
  return { shape: [...own.shape, 2], strides: [...own.strides.map((stride) => 2 * stride), 1], offset: 2 * own.offset };
}

/** Of weights, whose sizes are numbers. */
function known(size: Size): number {
  return typeof size === "number" ? size : (size.hint ?? 0);
}

interface Strided {
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  readonly offset: number;
}

/** Fills the tensor in row-major order, in the longest runs that lie together. */
function stridedCopy(tensor: Tensor, storage: Uint8Array, { shape, strides, offset }: Strided): Tensor {
  const bytes = tensorBytes(tensor);
  const size = dtypes[tensor.dtype].bytes;
  // The axes from `first` on lie in row-major order without gaps.
  let [first, run] = [shape.length, 1];
  while (first > 0 && (at(strides, first - 1) === run || at(shape, first - 1) === 1)) run *= at(shape, --first);
  const copy = (axis: number, from: number, to: number): number => {
    if (axis === first) {
      bytes.set(storage.subarray(from * size, (from + run) * size), to * size);
      return to + run;
    }
    let next = to;
    for (let i = 0; i < at(shape, axis); i++) next = copy(axis + 1, from + i * at(strides, axis), next);
    return next;
  };
  if (bytes.length > 0) copy(0, offset, 0);
  if (tensor.dtype === "bool") tensor.data.forEach((byte, i) => (tensor.data[i] = byte === 0 ? 0 : 1));
  return tensor;
}

function unreadDType(name: string, dtype: string, json: Json): never {
  return fail("model-unsupported", `${name} has a dtype that Braid does not have`, {
    place: { kind: "file", path: jsonPlaceText(json) },
    found: dtype,
    expected: torchDTypes,
    help: "convert the model before it is exported",
  });
}
