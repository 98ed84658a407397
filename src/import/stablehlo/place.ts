/** Sharding annotations of the text on values. */
import { set } from "../../ir/api/ops.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { madeAt } from "../origins.ts";
import { itemsIn } from "./read-attributes.ts";
import { invalidText, type Reader } from "./reader.ts";
import { placeByAxes, readSharding, type Sharding, shardingText } from "./sharding.ts";
import type { Attribute, Operation } from "./syntax/nodes.ts";
import { computed, type MlirValue, wholePart } from "./value.ts";

/**
 * The value with a sharding: its tensor is placed, or a copy if another annotation has placed it. Elements that the file
 * gives need no place.
 */
export function constrained(reader: Reader, position: number, value: MlirValue, sharding: Sharding): MlirValue {
  if (sharding.isOpen || sharding.mesh.devices === null || value.known !== null) return value;
  requireRank(reader, position, sharding, value.type.shape.length);
  return madeAt(reader, position, () => {
    const tensor = wholePart(reader, value);
    const text = shardingText(sharding, value.axes);
    const before = reader.placed.get(tensor.id);
    if (before === text) return computed(value.type, value.axes, tensor);
    const own = before === undefined ? tensor : set(tensor);
    placeOnce(reader, own, sharding, value.axes);
    return computed(value.type, value.axes, own);
  });
}

export function placeOnce(reader: Reader, tensor: TensorView, sharding: Sharding, leading: readonly string[]): void {
  placeByAxes(tensor, sharding, leading);
  reader.placed.set(tensor.id, shardingText(sharding, leading));
}

export function requireRank(reader: Reader, position: number, { mesh, axes }: Sharding, rank: number): void {
  // A sharding to one device names no axes.
  if (axes.length === rank || (axes.length === 0 && mesh.axes.size === 0)) return;
  invalidText(reader, position, {
    message: "a sharding is for a tensor of another rank",
    found: `${axes.length} axes`,
    expected: `${rank}, as many as the tensor has`,
  });
}

/** The value with the sharding that an attribute gives; the value itself without one. */
export function withSharding(
  reader: Reader,
  position: number,
  value: MlirValue,
  attribute: Attribute | undefined,
): MlirValue {
  if (attribute === undefined) return value;
  return constrained(reader, position, value, readSharding(reader, position, attribute));
}

/** The results of an op with what `sdy.sharding = #sdy.sharding_per_value<[..]>` says of them. */
export function withOwnShardings(reader: Reader, op: Operation, values: readonly MlirValue[]): readonly MlirValue[] {
  const attribute = op.attributes.get("sdy.sharding");
  if (attribute === undefined) return values;
  const items = itemsIn(attribute);
  return values.map((value, i) => withSharding(reader, op.position, value, items[i]));
}
