/** What the rows of ops share: an op with the values of its operands, and the value that it becomes. */
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { at, once } from "../../../support/invariant.ts";
import { knownValue } from "../constants.ts";
import type { Manual } from "../groups.ts";
import { madeAt } from "../../origins.ts";
import { type DevicePart, readExtents } from "../../manual/parts.ts";
import { invalidText, type Reader, unsupported } from "../reader.ts";
import type { Operation, OpRegion, Type } from "../syntax/nodes.ts";
import {
  computed,
  madeOnParts,
  manualAxes,
  dtypeIn,
  dtypeOf,
  type Element,
  type MlirValue,
  type ValueType,
} from "../value.ts";

export interface Reading {
  readonly reader: Reader;
  readonly op: Operation;
  readonly operands: readonly MlirValue[];
  /** The results of a region of the op on values, in the scope of the op; `manual`: as a manual computation. */
  readonly region: (region: OpRegion, values: readonly MlirValue[], manual?: Manual | null) => readonly MlirValue[];
  /** The results of a function of the module on values. */
  readonly call: (name: string, values: readonly MlirValue[]) => readonly MlirValue[];
  /** The manual computation that the op is in; null outside. */
  readonly manual: Manual | null;
}

export interface ReadRow {
  readonly read: (reading: Reading) => readonly MlirValue[];
  /** For the table of docs/import.md: what is not taken, or how the op is expressed. */
  readonly note?: string;
}

/**
 * Elements beyond this many are not computed with while the file is read: enough for positions and their bounds. Those
 * that differ between devices have no other form.
 */
export function mostKnown(axes: readonly string[]): number {
  return axes.length === 0 ? 64 : 65_536;
}

export function valueType(reader: Reader, position: number, type: Type): ValueType {
  if (type.kind !== "tensor") {
    return unsupported(reader, position, {
      message: "a value is not a tensor",
      found: type.text,
      expected: "a tensor type such as tensor<4x8xf32>",
      help: "leave tokens, tuples and buffers out of the function",
    });
  }
  const cached = reader.types.get(type);
  if (cached !== undefined) return cached;
  const { element, shape } = type;
  if (!dtypeOf.has(element)) {
    unsupported(reader, position, {
      message: "a tensor has a dtype that Braid does not have",
      found: element,
      expected: [...dtypeOf.keys()].join(", "),
      help: "convert the tensor in the framework",
    });
  }
  const made = { element, shape: shape.map((extent) => extent ?? failDynamic(reader, position)) };
  reader.types.set(type, made);
  return made;
}

function failDynamic(reader: Reader, position: number): never {
  return unsupported(reader, position, {
    message: "a tensor has a dynamic extent",
    found: "?",
    expected: "constant extents",
    help: "lower the function for arguments of fixed shapes",
  });
}

export function resultType({ reader, op }: Reading, result = 0): ValueType {
  const type = op.resultTypes[result];
  if (type !== undefined) return valueType(reader, op.position, type);
  return invalidText(reader, op.position, {
    message: `${op.name} has no type for its result`,
    found: `${op.resultTypes.length} types`,
    expected: `a type for result ${result}`,
  });
}

export function operandAt({ reader, op, operands }: Reading, position = 0): MlirValue {
  const value = operands[position];
  if (value !== undefined) return value;
  return invalidText(reader, op.position, {
    message: `${op.name} has too few operands`,
    found: `${operands.length}`,
    expected: `at least ${position + 1}`,
  });
}

export function typeText({ element, shape }: ValueType): string {
  return `tensor<${[...shape, element].join("x")}>`;
}

export function isSameType(a: ValueType, b: ValueType): boolean {
  if (a === b) return true;
  return (
    a.element === b.element && a.shape.length === b.shape.length && a.shape.every((extent, i) => extent === b.shape[i])
  );
}

/** Refuses what the op may say and Braid cannot do, with the op's name. */
export function refuse({ reader, op }: Reading, found: string, expected: string, help?: string): never {
  return unsupported(reader, op.position, {
    message: `${op.name} is not supported in this form`,
    found,
    expected,
    help: help ?? "write the function without it; docs/import.md lists what is read",
  });
}

export function contradicted({ reader, op }: Reading, found: string, expected: string): never {
  return invalidText(reader, op.position, {
    message: `${op.name} contradicts its types`,
    found,
    expected,
  });
}

/** The result of the op as the tensor that `make` gives, which must have the result's type. */
export function madeValue(reading: Reading, make: () => TensorView): MlirValue {
  const [value] = madeValues(reading, () => [make()]);
  return value ?? contradicted(reading, "no result", "one result");
}

/** The same with its elements, if the file gives them; the tensor is made when it is asked for. */
export function foldedValue(reading: Reading, known: readonly Element[] | null, make: () => TensorView): MlirValue {
  if (known === null) return madeValue(reading, make);
  const { reader, operands } = reading;
  const [type, axes] = [resultType(reading), manualAxes(reader, operands)];
  if (axes.length > 0) return knownValue(reader, type, axes, known);
  return { type, axes, known, tensor: once(() => madeValue(reading, make).tensor()) };
}

/** All results; `values`: what `make` reads. */
export function madeValues(
  reading: Reading,
  make: () => readonly TensorView[],
  values: readonly MlirValue[] = reading.operands,
): readonly MlirValue[] {
  const { reader, op } = reading;
  return madeAt(reader, op.position, () => {
    const parts = madeOnParts(reader, values, () => {
      const tensors = make();
      tensors.forEach((tensor, i) => {
        requireTyped(reading, { tensor, axes: [] }, resultType(reading, i));
      });
      return tensors;
    });
    return parts.map(({ tensor, axes }, i) => computed(resultType(reading, i), axes, tensor));
  });
}

/** An axis of extent 1 stands for one along which the tensor repeats. */
export function requireTyped(
  reading: Reading,
  { tensor, axes }: Pick<DevicePart, "tensor" | "axes">,
  type: ValueType,
): void {
  const found = readExtents(tensor).slice(axes.length);
  const fits =
    found.length === type.shape.length && found.every((extent, i) => extent === 1 || extent === type.shape[i]);
  if (fits && tensor.dtype === dtypeIn(type)) return;
  contradicted(reading, `a result of ${tensor.dtype} [${found.join(", ")}]`, typeText(type));
}

/** A row of an op with one result. */
export function readRow(read: (reading: Reading) => MlirValue, note?: string): ReadRow {
  return { read: (reading) => [read(reading)], ...(note === undefined ? {} : { note }) };
}

export function firstRegion({ reader, op }: Reading, position = 0): OpRegion {
  const region = op.regions[position];
  if (region !== undefined) return region;
  return invalidText(reader, op.position, {
    message: `${op.name} lacks a region`,
    found: `${op.regions.length}`,
    expected: `at least ${position + 1}`,
  });
}

/** The name of the one op of a region on two scalars, `stablehlo.add`; null for another region. */
export function soleOpOf({ arguments: given, operations }: OpRegion): string | null {
  const [op, end] = operations;
  if (op === undefined || end === undefined || operations.length !== 2 || given.length !== 2) return null;
  const names = new Set(given.map(({ name }) => name));
  const isOfBoth = op.operands.length === 2 && new Set(op.operands.filter((name) => names.has(name))).size === 2;
  return isOfBoth && at(op.results, 0) === end.operands[0] ? op.name : null;
}
