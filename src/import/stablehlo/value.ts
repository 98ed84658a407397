/**
 * A value of the text, while it becomes tensors of the Fusion. Two facts make programs small: elements that the file
 * itself gives are known, and an axis along which a tensor only repeats keeps the extent 1.
 *
 * In a manual computation a value has the shape of one device's part. `axes` names the mesh dimensions over which it
 * differs: its tensor has one leading axis for each of them, which is sharded along it.
 */
import type { Fusion } from "../../ir/api/fusion.ts";
import { bitAnd, full } from "../../ir/api/ops.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { outputsOf } from "../../ir/ops/op.ts";
import { type DType, dtypesBy } from "../../numerics/dtype.ts";
import { elementCount, type Value as Element } from "../../numerics/tensor/host-tensor.ts";
import { at, getOrMake, once } from "../../support/invariant.ts";
import { opOnParts } from "../manual/op-on-parts.ts";
import { type DevicePart, readExtents, sizesAlong, unionOfAxes, wholeOnAxes } from "../manual/parts.ts";
import { importedFusion } from "../origins.ts";
import { expandedTo } from "../views.ts";
import type { DeviceProgram, Reader, ValueType } from "./reader.ts";

export type { Element, ValueType };

export interface MlirValue {
  readonly type: ValueType;
  readonly axes: readonly string[];
  /** Its elements, row-major after the axes; one if all are equal. Null if only a run knows them, or they are many. */
  readonly known: readonly Element[] | null;
  /** The axis of which each element is the index; absent for other values. */
  readonly counts?: number;
  /** Its tensor, made when it is first asked for. */
  readonly tensor: () => TensorView;
}

/**
 * The dtype for an element type. `ui32` is an int64 whose results are cut to 32 bits, `ui64` an int64 of the same bits:
 * ops for which its sign matters are refused.
 */
export const dtypeOf: ReadonlyMap<string, DType> = new Map<string, DType>([
  ...dtypesBy("stablehlo"),
  ["si32", "int"],
  ["ui32", "int64"],
  ["ui64", "int64"],
]);

export function dtypeIn({ element }: ValueType): DType {
  return dtypeOf.get(element) ?? "float";
}

/** Whether the upper bits of a result that may have more than its type must be cut off. */
export function wraps({ element }: ValueType): boolean {
  return element === "ui32";
}

export function cutTo(type: ValueType, tensor: TensorView): TensorView {
  return wraps(type) ? bitAnd(tensor, 0xff_ff_ff_ffn) : tensor;
}

/** A value that a run computes. */
export function computed(type: ValueType, axes: readonly string[], tensor: TensorView): MlirValue {
  return { type, axes, known: null, tensor: () => tensor };
}

/** A value whose elements are all equal. */
export function splat(reader: Reader, type: ValueType, element: Element): MlirValue {
  const shape = type.shape.map(() => 1);
  return {
    type,
    axes: [],
    known: [element],
    tensor: once(() => full(reader.fusion, shape, element, dtypeIn(type))),
  };
}

/** A scalar of a number, to try what a region does with it. */
export function scalarOf(reader: Reader, element: string, value: number): MlirValue {
  const type = { element, shape: [] };
  return splat(reader, type, dtypeIn(type) === "int64" ? BigInt(value) : value);
}

/** The one element of a value that has no others; null if a run gives it. */
export function splatOf({ known }: MlirValue): Element | null {
  return known?.length === 1 ? at(known, 0) : null;
}

/** All elements, over axes and shape; null if a run gives them. */
export function knownElements(reader: Reader, { known, type, axes }: MlirValue): readonly Element[] | null {
  if (known === null || known.length !== 1) return known;
  const count = elementCount([...sizesOf(reader, axes), ...type.shape]);
  return Array.from({ length: count }, () => at(known, 0));
}

export function sizesOf({ meshes }: Reader, axes: readonly string[]): readonly number[] {
  return sizesAlong(meshes.sizes, axes);
}

/** The dimensions over which any of the values differs, in the order in which tensors have them. */
export function manualAxes({ meshes }: Reader, values: readonly MlirValue[]): readonly string[] {
  return unionOfAxes(
    meshes.sizes,
    values.map(({ axes }) => axes),
  );
}

export function devicePartOf({ tensor, axes, type }: MlirValue): DevicePart {
  return { tensor: tensor(), axes, shape: type.shape };
}

/** The tensor of all parts, each whole. */
export function wholePart({ meshes }: Reader, value: MlirValue): TensorView {
  return wholeOnAxes(meshes.sizes, devicePartOf(value), value.axes);
}

interface InReader {
  readonly reader: Reader;
}

/** Where a row puts its ops. */
export function fusionOf({ device, fusion }: Reader): Fusion {
  return device?.fusion ?? fusion;
}

/** The tensor of a value for the ops of a row, as one device has it. An axis along which it repeats has the extent 1. */
export function ownView({ reader: { device } }: InReader, value: MlirValue): TensorView {
  return device === null ? value.tensor() : device.inputOf(devicePartOf(value));
}

/** The same with the whole shape. */
export function ownWhole(reading: InReader, value: MlirValue): TensorView {
  return expandedTo(ownView(reading, value), value.type.shape);
}

/**
 * What `make` makes of values. If one of them differs between devices, its ops are those of one device, which become
 * ops on the parts of all.
 */
export function madeOnParts(
  reader: Reader,
  values: readonly MlirValue[],
  make: () => readonly TensorView[],
): readonly Pick<DevicePart, "tensor" | "axes">[] {
  const before = reader.device;
  const parts: DevicePart[] = [];
  reader.device = values.some(({ axes }) => axes.length > 0) ? deviceProgram(parts) : null;
  const { device } = reader;
  let made: readonly TensorView[];
  try {
    made = make();
  } finally {
    reader.device = before;
  }
  if (device === null) return made.map((tensor) => ({ tensor, axes: none }));
  const { tensors, ops } = device.fusion.data();
  for (const op of ops) {
    const operands = op.inputs.map((id) => at(parts, id));
    const results = opOnParts(reader.fusion, reader.meshes.sizes, op, tensors, operands);
    for (const [i, id] of outputsOf(op).entries()) parts[id] = at(results, i);
  }
  return made.map(({ id }) => at(parts, id));
}

const none: readonly never[] = [];

/** `parts`: of each tensor of the program, those of all devices. */
function deviceProgram(parts: DevicePart[]): DeviceProgram {
  const fusion = importedFusion();
  const inputs = new Map<number, TensorView>();
  const inputOf = (part: DevicePart): TensorView =>
    getOrMake(inputs, part.tensor.id, () => {
      const shape = readExtents(part.tensor).slice(part.axes.length);
      const input = fusion.input(shape, part.tensor.dtype);
      parts[input.id] = { ...part, shape };
      return input;
    });
  return { fusion, inputOf };
}
