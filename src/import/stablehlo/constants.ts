/** Constants of the text: `dense<1.0>`, `dense<[[0, 1], [2, 3]]>`, `dense<"0x..">`. */
import { iota, reshape } from "../../ir/api/ops.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { bitsToFloat, roundPacked } from "../../numerics/convert.ts";
import { type DType, dtypes, isPacked } from "../../numerics/dtype.ts";
import { emptyTensor, elementCount, elementsOf, storageView } from "../../numerics/tensor/host-tensor.ts";
import { at, once } from "../../support/invariant.ts";
import { invalidText, type Reader, unsupported } from "./reader.ts";
import type { Attribute, Operation } from "./syntax/nodes.ts";
import { dtypeIn, type Element, sizesOf, splat, type MlirValue, type ValueType } from "./value.ts";

export function readConstant(reader: Reader, op: Operation, type: ValueType, attribute: Attribute | null): MlirValue {
  const elements = denseElements(reader, op, type, attribute);
  return knownValue(reader, type, [], elements);
}

function denseElements(
  reader: Reader,
  op: Operation,
  type: ValueType,
  attribute: Attribute | null,
): readonly Element[] {
  const body = attribute?.kind === "named" && attribute.name === "dense" ? attribute.body : null;
  const items = body?.kind === "group" ? body.items : [];
  const count = elementCount(type.shape);
  const dtype = dtypeIn(type);
  if (body === null) {
    return unsupported(reader, op.position, {
      message: "a constant has another form",
      found: attribute?.kind === "named" ? `${attribute.name}<..>` : "no dense<..>",
      expected: "dense<..>, whose elements stand in the text",
      help: "print the module with its large constants",
    });
  }
  const [only] = items;
  const elements =
    only?.kind === "string"
      ? fromHex(only.text, dtype, type.element)
      : flattened(items).map((each) => elementOf(each, dtype));
  if (elements.includes(null) || (elements.length !== count && elements.length !== 1)) {
    return invalidText(reader, op.position, {
      message: "the elements of a constant do not fit its type",
      found: elements.includes(null) ? `an element that is not ${type.element}` : `${elements.length} elements`,
      expected: `${count} elements of ${type.element}, or one for all`,
      help: "pass the text as the framework printed it; a constant may be cut off",
    });
  }
  return elements.filter((element) => element !== null);
}

function flattened(items: readonly Attribute[]): readonly Attribute[] {
  return items.some(({ kind }) => kind === "group")
    ? items.flatMap((item) => (item.kind === "group" ? flattened(item.items) : [item]))
    : items;
}

/** Null for another attribute. Hexadecimal floats are their bits. */
function elementOf(attribute: Attribute, dtype: DType): Element | null {
  if (attribute.kind === "word") return attribute.text === "true" ? 1 : attribute.text === "false" ? 0 : null;
  if (attribute.kind !== "number") return null;
  const { text } = attribute;
  const { family, bytes } = dtypes[dtype];
  if (family !== "float") {
    if (!/^-?(?:0x)?[\da-f]+$/iu.test(text)) return null;
    const value = text.startsWith("-") ? -BigInt(text.slice(1)) : BigInt(text);
    if (dtype === "bool") return value === 0n ? 0 : 1;
    return dtype === "int64" ? BigInt.asIntN(64, value) : Number(BigInt.asIntN(32, value));
  }
  if (/^-?0x/u.test(text)) return floatOfBits(BigInt(text), dtype, bytes);
  const value = Number(text);
  if (Number.isNaN(value)) return null;
  return rounded(value, dtype);
}

function rounded(value: number, dtype: DType): number {
  if (dtype === "double") return value;
  const single = Math.fround(value);
  return isPacked(dtype) ? roundPacked(dtype, single) : single;
}

function floatOfBits(bits: bigint, dtype: DType, bytes: number): number {
  if (dtype === "float") return bitsToFloat(Number(BigInt.asIntN(32, bits)));
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, BigInt.asUintN(8 * bytes, bits), true);
  return Number(elementsOf(dtype, storageView(dtype, view.buffer, 0, 1)).get(0));
}

/** Little-endian bytes, of bool one bit an element. */
function fromHex(text: string, dtype: DType, element: string): readonly (Element | null)[] {
  if (text.length % 2 > 0 || !/^0x/iu.test(text) || /[^\da-f]/iu.test(text.slice(2))) return [null];
  const bytes = new Uint8Array(text.length / 2 - 1);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(text.slice(2 * i + 2, 2 * i + 4), 16);
  if (dtype === "bool") {
    if (bytes.length === 1) return [at(bytes, 0) === 0 ? 0 : 1];
    return Array.from({ length: 8 * bytes.length }, (_, i) => (at(bytes, i >> 3) >> (i & 7)) & 1);
  }
  if (element === "ui32") return words(bytes);
  const width = dtypes[dtype].bytes;
  const elements = elementsOf(dtype, storageView(dtype, bytes.buffer, 0, Math.floor(bytes.length / width)));
  return Array.from({ length: elements.length }, (_, i) => elements.get(i));
}

function words(bytes: Uint8Array): readonly Element[] {
  return Array.from(new Uint32Array(bytes.buffer, 0, bytes.length >> 2), BigInt);
}

/** A value of known elements, [axes, shape], which differs only over the axes over which these do. */
export function knownValue(
  reader: Reader,
  type: ValueType,
  axes: readonly string[],
  elements: readonly Element[],
): MlirValue {
  const [first] = elements;
  if (first !== undefined && elements.every((element) => Object.is(element, first))) return splat(reader, type, first);
  const inner = elementCount(type.shape);
  const sizes = sizesOf(reader, axes);
  const repeats = axes.findIndex((_, i) => {
    const span = inner * elementCount(sizes.slice(i + 1));
    const size = at(sizes, i);
    return elements.every((element, j) => Object.is(element, elements[j - (Math.floor(j / span) % size) * span]));
  });
  if (repeats >= 0) {
    const span = inner * elementCount(sizes.slice(repeats + 1));
    const kept = elements.filter((_, j) => Math.floor(j / span) % at(sizes, repeats) === 0);
    return knownValue(reader, type, axes.toSpliced(repeats, 1), kept);
  }
  return {
    type,
    axes,
    known: elements,
    tensor: once(() => tensorOf(reader, type, [...sizes, ...type.shape], elements)),
  };
}

/** An iota where the elements ascend evenly; else an input whose value the model has. */
function tensorOf(reader: Reader, type: ValueType, shape: readonly number[], elements: readonly Element[]): TensorView {
  return evenSteps(reader, type, shape, elements) ?? constantInput(reader, type, shape, elements);
}

function evenSteps(
  { fusion }: Reader,
  type: ValueType,
  shape: readonly number[],
  elements: readonly Element[],
): TensorView | null {
  const dtype = dtypeIn(type);
  if (dtypes[dtype].family !== "integer") return null;
  const [start = 0, next = 0] = elements.map(Number);
  const step = next - start;
  if (!elements.every((element) => Number.isSafeInteger(Number(element)))) return null;
  if (!elements.every((element, i) => Number(element) === start + i * step)) return null;
  const counted = iota(fusion, elements.length, { start, step, dtype });
  return shape.length === 1 ? counted : reshape(counted, shape);
}

function constantInput(
  reader: Reader,
  type: ValueType,
  shape: readonly number[],
  elements: readonly Element[],
): TensorView {
  const { fusion, constants } = reader;
  const value = emptyTensor(dtypeIn(type), shape);
  const stored = elementsOf(value.dtype, value.data);
  elements.forEach((element, i) => {
    stored.set(i, element);
  });
  constants.set(fusion.inputs.length, value);
  return fusion.input(shape, value.dtype);
}
