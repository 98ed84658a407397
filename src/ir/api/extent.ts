/** Extents and indices that calls take: numbers, axes of the program, and their extents. */
import { type Call, reject, requireExtent } from "../ops/call.ts";
import { constant, leavesOf, printScalar, type Scalar } from "../scalar/scalar.ts";
import type { FusionBuilder } from "./fusion-builder.ts";
import { axisOwner, requireOwner } from "./handle.ts";
import type { IterDomain } from "./iter-domain.ts";

/** A number, an axis of the program, or an extent of one: `8`, `x.axis(0)`, `x.extents[0]`. */
export type Extent = number | Scalar | IterDomain;

/** As a call's text shows it: `8`, `i0`. */
export function extentText(extent: Extent | null): string {
  if (typeof extent !== "object" || extent === null) return String(extent);
  if (axisOwner in extent) return printScalar(extent.extent);
  return "kind" in extent ? printScalar(extent) : "an object";
}

/** The extent as a number or scalar. Throws `foreign-tensor`, `bad-argument`. */
export function extentIn(builder: FusionBuilder, extent: Extent, place: Call): number | Scalar {
  // Calls from JavaScript may pass other values, which the checks of numbers refuse.
  if (typeof extent !== "object") return extent;
  requireForm(extent, place);
  if (axisOwner in extent) requireOwner(extent[axisOwner], builder, "an axis", place);
  const scalar = axisOwner in extent ? extent.extent : extent;
  const unknown = [...leavesOf(scalar)].filter((name) => !builder.symbols.has(name));
  if (unknown.length === 0) return scalar.kind === "constant" ? scalar.value : scalar;
  const known = [...builder.symbols].join(", ");
  return reject(place, "bad-argument", `${unknown.join(", ")} is not an extent of this Fusion`, {
    found: printScalar(scalar),
    expected: known === "" ? "a number: this Fusion has no symbolic extent" : `a number, or one of ${known}`,
    help: "take the extent from a tensor of this Fusion: x.extents[0]",
  });
}

/** The extent as a scalar. Throws `foreign-tensor`, `bad-argument`, `bad-extent`. */
export function knownExtent(builder: FusionBuilder, extent: Extent, place: Call): Scalar {
  const known = extentIn(builder, extent, place);
  return typeof known === "object" ? known : constant(requireExtent(known, place));
}

/** Checks the factor of a split, which is known when the program is built. Throws `bad-extent`, `bad-argument`. */
export function requireFactor(factor: Extent, place: Call): void {
  if (typeof factor !== "object") return void requireExtent(factor, place, 1);
  reject(place, "bad-argument", "a split's factor is not a number", {
    found: extentText(factor),
    expected: "a whole number of at least 1",
    help: "write the number of parts, which an axis of any size can have: x.outerSplit(0, 4)",
  });
}

function requireForm(value: object | null, place: Call): void {
  if (value !== null && (axisOwner in value || "kind" in value)) return;
  reject(place, "bad-argument", "an extent is neither a number nor an axis", {
    found: value === null ? "null" : "another object",
    expected: "a number, an axis, or an extent of a tensor",
    help: "pass 8, x.axis(0) or x.extents[0]",
  });
}
