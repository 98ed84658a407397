/** Manual computations: functions of one device's parts, which become tensors with leading axes (manual/parts.ts). */
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { at } from "../../../support/invariant.ts";
import type { Manual } from "../groups.ts";
import { constrained, placeOnce, requireRank } from "../place.ts";
import { attributeOf, itemsIn } from "../read-attributes.ts";
import { madeAt } from "../../origins.ts";
import { joinParts, splitIntoParts } from "../../manual/parts.ts";
import { dimensionsIn, readSharding, type Sharding } from "../sharding.ts";
import { computed, devicePartOf, sizesOf, splat, splatOf, type MlirValue, type ValueType } from "../value.ts";
import {
  contradicted,
  firstRegion,
  isSameType,
  type ReadRow,
  type Reading,
  refuse,
  resultType,
  typeText,
  valueType,
} from "./reading.ts";

function manualComputation(reading: Reading): readonly MlirValue[] {
  const { reader, op, operands } = reading;
  const region = firstRegion(reading);
  const [into, out] = ["in_shardings", "out_shardings"].map((name) => shardingsOf(reading, name));
  const [first = out?.[0]] = into ?? [];
  const names = manualNames(reading, first);
  if (first === undefined || names.length === 0) return reading.region(region, operands);
  if (into?.length !== operands.length || out?.length !== op.resultTypes.length) {
    contradicted(
      reading,
      `${into?.length ?? 0} and ${out?.length ?? 0} shardings`,
      "one for each operand and each result",
    );
  }
  // Inside another manual computation, its dimensions stay manual.
  const outer = reading.manual?.names ?? [];
  const manual: Manual = { mesh: first.mesh, names: [...outer, ...names] };
  const parts = operands.map((value, i) => {
    const type = region.arguments[i]?.type;
    const part = pieceOf(reading, value, at(into, i), names);
    if (type !== undefined && !isSameType(part.type, valueType(reader, op.position, type))) {
      contradicted(
        reading,
        `argument ${i} of the part ${typeText(part.type)}`,
        typeText(valueType(reader, op.position, type)),
      );
    }
    return part;
  });
  const results = reading.region(region, parts, manual);
  return results.map((value, i) => wholeOf(reading, value, at(out, i), names, resultType(reading, i)));
}

function shardingsOf({ reader, op }: Reading, name: string): readonly Sharding[] {
  return itemsIn(attributeOf(op, name)).map((item) => readSharding(reader, op.position, item));
}

function manualNames({ reader, op }: Reading, sharding: Sharding | undefined): readonly string[] {
  if (sharding === undefined) return [];
  const items = itemsIn(attributeOf(op, "manual_axes"));
  return items.flatMap((item) => dimensionsIn(reader, op.position, sharding.mesh, item));
}

/** One device's part of a whole tensor. */
function pieceOf(reading: Reading, value: MlirValue, sharding: Sharding, manual: readonly string[]): MlirValue {
  const { reader, op } = reading;
  requireRank(reader, op.position, sharding, value.type.shape.length);
  const inner = sharding.axes.map((names) => names.filter((name) => manual.includes(name)));
  const shape = value.type.shape.map((extent, i) => {
    const part = extent / product(sizesOf(reader, at(inner, i)));
    return Number.isInteger(part) ? part : refuse(reading, `an axis of ${extent} in unequal parts`, "equal parts");
  });
  if (sharding.axes.some((names, i) => at(inner, i).some((name, k) => names[k] !== name))) {
    refuse(reading, "a sharding that names free axes before manual ones", "manual axes first");
  }
  const type = { element: value.type.element, shape };
  const element = splatOf(value);
  if (element !== null) return splat(reader, type, element);
  const placed = constrained(reader, op.position, value, sharding);
  if (inner.every((names) => names.length === 0)) return { ...placed, type };
  return madeAt(reader, op.position, () => {
    const { tensor, axes } = splitIntoParts(reader.meshes.sizes, devicePartOf(placed), inner);
    const free = sharding.axes.map((names) => names.filter((name) => !manual.includes(name)));
    placeOnce(reader, tensor, { ...sharding, axes: free }, axes);
    return computed(type, axes, tensor);
  });
}

/** The whole tensor of which the value is one device's part. */
function wholeOf(
  reading: Reading,
  value: MlirValue,
  sharding: Sharding,
  manual: readonly string[],
  type: ValueType,
): MlirValue {
  const { reader, op } = reading;
  requireRank(reader, op.position, sharding, type.shape.length);
  const inner = sharding.axes.map((names) => names.filter((name) => manual.includes(name)));
  const fits = value.type.shape.every((extent, i) => extent * product(sizesOf(reader, at(inner, i))) === type.shape[i]);
  if (!fits || value.type.shape.length !== type.shape.length)
    contradicted(reading, `a part ${typeText(value.type)} of ${typeText(type)}`, "parts that make up the result");
  const element = splatOf(value);
  if (element !== null) return splat(reader, type, element);
  // Devices that hold the same part by the sharding hold the same elements: the first one's are taken.
  const whole = madeAt(reader, op.position, () => joinParts(reader.meshes.sizes, devicePartOf(value), inner, manual));
  return constrained(reader, op.position, computed(type, whole.axes, whole.tensor), sharding);
}

function product(sizes: readonly number[]): number {
  return sizes.reduce((all, size) => all * size, 1);
}

/** A tensor of a fully manual computation is cut along its leading axes and nowhere else. */
export function placePart(reading: Reading, tensor: TensorView, axes: readonly string[], rank: number): void {
  const { manual, reader } = reading;
  if (manual === null) return;
  if (manual.mesh.devices?.names.every((name) => manual.names.includes(name)) !== true) return;
  const sharding = { mesh: manual.mesh, axes: Array.from({ length: rank }, () => []), isOpen: false };
  if (!reader.placed.has(tensor.id)) placeOnce(reader, tensor, sharding, axes);
}

export const manualRows: Readonly<Record<string, ReadRow>> = {
  "sdy.manual_computation": { read: manualComputation, note: "of equal parts" },
};
