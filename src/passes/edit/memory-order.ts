/**
 * The order of a tensor's axes in memory. Passes that split a tensor differently keep it, so that an output has the
 * user's layout.
 */
import { axisParts } from "../../ir/axis-shards.ts";
import { isDID, type IterDomain, type TensorDomain } from "../../ir/domain.ts";
import { at } from "../../support/invariant.ts";

/**
 * The logical axes, outermost in memory first. Null where the user set no order, or set one in which parts of one axis
 * are not adjacent. Parts with a DID type take no place in a device's memory and do not count.
 */
export function memoryOrder(domain: TensorDomain): readonly IterDomain[] | null {
  const { allocation, logical } = domain;
  if (allocation === null) return null;
  const parts = logical.map((axis) => axisParts(domain, axis));
  const order: number[] = [];
  for (const { id, parallelType } of allocation) {
    const whole = logical.findIndex((axis) => axis.id === id);
    const position = whole >= 0 ? whole : parts.findIndex((own) => own.some((part) => part.id === id));
    if (position < 0) return null;
    if (whole < 0 && isDID(parallelType)) continue;
    if (order.at(-1) === position) continue;
    if (order.includes(position)) return null;
    order.push(position);
  }
  const left = [...logical.keys()].filter((i) => at(logical, i).iterType !== "reduction" && !order.includes(i));
  return [...order, ...left].map((position) => at(logical, position));
}

/** The order of `domain` for a new list of logical axes. Axes that `domain` does not have become innermost. */
export function movedOrder(domain: TensorDomain, logical: readonly IterDomain[]): readonly IterDomain[] | null {
  const order = memoryOrder(domain);
  if (order === null) return null;
  const kept = order.flatMap(({ id }) => logical.filter((axis) => axis.id === id));
  return [...kept, ...logical.filter((axis) => !kept.includes(axis) && axis.iterType !== "reduction")];
}
