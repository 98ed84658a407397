/**
 * The order of a tensor's axes. Dumps print the loop domain, in which nvFuser moves the axes of devices to the front:
 *
 *   T0_g_float[ideviceIdx.x1{i2}, iS0{i0}, iS2{i3}]     logical domain: iS0, ideviceIdx.x1, iS2
 *
 * Axes are numbered in the logical order, so their numbers tell it. Those of a permuted tensor are numbered in its
 * operand's order; it prints its logical order as long as no axis of devices stands first.
 */
import type { IterDomain, Tensor } from "../../../ir/domain.ts";
import { isDID } from "../../../ir/domain.ts";

/** The printed axes in logical order; null where several orders print alike. */
export function logicalOrder(printed: readonly IterDomain[]): readonly IterDomain[] | null {
  if (isNumbered(printed)) return printed;
  const moved = leadingParallel(printed);
  if (moved === 0) return printed;
  return isNumbered(printed.slice(moved)) ? printed.toSorted((a, b) => a.id - b.id) : null;
}

/** Whether the printed axes of a tensor show its logical ones: nothing was split, and the order can be told. */
export function showsLogicalOrder({ domain: { logical, loop, transforms } }: Tensor): boolean {
  const shown = transforms.length === 0 ? logicalOrder(loop) : null;
  return shown !== null && logical.length === shown.length && logical.every((axis, i) => axis.id === shown[i]?.id);
}

/** The tensor with the axes of devices first in its text, unless that would hide its logical order. */
export function devicesFirst(tensor: Tensor): Tensor {
  const { domain } = tensor;
  const loop = [
    ...domain.loop.filter(({ parallelType }) => isDID(parallelType)),
    ...domain.loop.filter(({ parallelType }) => !isDID(parallelType)),
  ];
  const reordered: Tensor = { ...tensor, domain: { ...domain, loop } };
  return showsLogicalOrder(reordered) ? reordered : tensor;
}

/** How many axes of devices and streams stand in front of all others. */
export function leadingParallel(axes: readonly IterDomain[]): number {
  const first = axes.findIndex(({ parallelType }) => parallelType === "Serial");
  return first < 0 ? axes.length : first;
}

function isNumbered(axes: readonly IterDomain[]): boolean {
  return axes.every(({ id }, i) => i === 0 || id > (axes[i - 1]?.id ?? -1));
}
