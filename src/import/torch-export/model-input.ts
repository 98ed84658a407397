/** Inputs of a model's program, and the symbols of their sizes. */
import { fail } from "../../diagnostics/diagnostic.ts";
import type { Fusion } from "../../ir/api/fusion.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { constant, type Scalar } from "../../ir/scalar/scalar.ts";
import { at } from "../../support/invariant.ts";
import { type ExportedGraph, type Size, type TensorMeta, torchDTypes } from "./graph.ts";
import type { ImportedSize } from "../model.ts";
import { withName } from "./model.ts";
import { isComplex, realDType } from "./weights.ts";

/** The symbols that export left open, as scalars of the Fusion, and what is known of them. */
export interface Symbols {
  readonly scalars: Map<string, Scalar>;
  readonly sizes: Map<string, ImportedSize>;
  readonly ranges: ExportedGraph["ranges"];
}

/** An input of the model's program. Throws `model-unsupported`. */
export function modelInput(
  fusion: Fusion,
  path: string,
  name: string,
  meta: TensorMeta,
  { scalars, sizes, ranges }: Symbols,
): TensorView {
  const dtype = realDType(meta.dtype);
  if (dtype === null) {
    return refuseInput(path, name, meta.dtype.name, torchDTypes);
  }
  const extents = meta.sizes.map((size) => {
    if (typeof size === "number") return size;
    return (
      scalars.get(symbolIn(size.expression) ?? refuseInput(path, name, size.expression, "sizes that are one symbol")) ??
      null
    );
  });
  const tensor = withName(fusion.input(isComplex(meta.dtype) ? [...extents, 2] : extents, dtype), name);
  meta.sizes.forEach((size, axis) => {
    const extent = at(tensor.extents, axis);
    const own = typeof size === "number" ? null : symbolIn(size.expression);
    if (typeof size === "number" || own === null || extent.kind !== "symbol" || scalars.has(own)) return;
    scalars.set(own, extent);
    sizes.set(extent.name, { name: own, ...(ranges.get(own) ?? { min: null, max: null }), example: size.hint });
  });
  return tensor;
}

export function refuseInput(path: string, name: string, found: string, expected: string): never {
  return fail("model-unsupported", `${name} has a dtype or shape that Braid does not have`, {
    place: { kind: "file", path },
    found,
    expected,
    help: "convert it in the model, and export it again",
  });
}

/** `Symbol('s27', positive=True, integer=True)` and `s27`; null for another expression. */
function symbolIn(expression: string): string | null {
  return /^(?:Symbol\('(\w+)'(?:, \w+=\w+)*\)|([A-Za-z_]\w*))$/u.exec(expression)?.slice(1).find(Boolean) ?? null;
}

/** A size as a scalar of the Fusion; null for a symbol that no input has. */
export function extentOf(size: Size, { scalars }: Symbols): Scalar | null {
  return typeof size === "number" ? constant(size) : (scalars.get(symbolIn(size.expression) ?? "") ?? null);
}
