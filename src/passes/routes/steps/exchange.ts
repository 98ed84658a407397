/**
 * What devices lack when a tensor moves from one layout to another: the fewest bytes that any way to get there moves. An
 * AllToAllV moves just these.
 */
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";
import type { Layout } from "../../../ir/layout.ts";
import { type CutAxis, heldRuns, isEven, numbersOf, onDevice, rescaled } from "../../../ir/parts.ts";
import { commonRegion, elementsIn, type IndexRegion } from "../../../ir/runs.ts";
import { constantValue } from "../../../ir/scalar/fold.ts";
import { constant } from "../../../ir/scalar/scalar.ts";
import { at } from "../../../support/invariant.ts";

/** What the device that lacks most receives, as a fraction of the tensor. */
export function exchangedFraction(from: Layout, to: Layout): number {
  const sizes = from.axes.map((axis, i) => sizeOf([axis, at(to.axes, i)]));
  const [before, after] = [from, to].map(({ axes }) =>
    axes.map((axis, i) => numbersOf(rescaled(axis, constant(at(sizes, i))))),
  );
  const whole = elementCount(sizes);
  if (whole === 0 || before === undefined || after === undefined) return 0;
  const lacks = to.mesh.devices.map((device) => {
    const wanted = regionOn(to, after, device);
    const known = from.mesh.has(device) ? elementsIn(commonRegion(wanted, regionOn(from, before, device))) : 0;
    return elementsIn(wanted) - known;
  });
  return Math.max(...lacks) / whole;
}

/** What the device that holds most holds, as a fraction of the tensor. */
export function largestShare(of: Layout): number {
  if (hasEvenShares(of)) return [...of.shares.values()].reduce((share, { devices }) => share / devices, 1);
  const axes = of.axes.map((axis) => numbersOf(rescaled(axis, constant(sizeOf([axis])))));
  const whole = axes.reduce((product, { extent }) => product * extent, 1);
  const held = of.mesh.devices.map((device) => elementsIn(regionOn(of, axes, device)));
  return whole === 0 ? 0 : Math.max(...held) / whole;
}

/** The size of an axis; of a symbolic extent one that the parts of both layouts divide evenly. */
function sizeOf(axes: readonly CutAxis[]): number {
  const known = axes.flatMap(({ extent }) => constantValue(extent) ?? []);
  const factors = axes.flatMap(({ parts }) => parts.map(({ extent }) => constantValue(extent) ?? 1));
  return known[0] ?? factors.reduce((product, factor) => product * factor, 1);
}

function regionOn({ mesh }: Layout, axes: readonly CutAxis<number>[], device: number): IndexRegion {
  return axes.map((axis) =>
    heldRuns(
      axis,
      onDevice((type) => mesh.coordinate(device, type)),
    ),
  );
}

/** Whether all parts of the axes that the layout cuts are equal, as far as extents are numbers. */
export function hasEvenShares({ axes }: Layout): boolean {
  return axes.every(isEven);
}
