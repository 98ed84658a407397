/**
 * Determines the sizes of a run from its inputs, the meshes and the sizes given by name. Each set of sizes has its own
 * Program.
 */
import { requireMeshSizes, type Sizes, sizesFromMeshes, sizesFromShapes } from "../ir/sizes.ts";
import { type NamedNumbers, numbersByName } from "../compile/record.ts";
import { at } from "../support/invariant.ts";
import type { Signature } from "../compile/lower-all.ts";
import { requireCount, requireShardShapes, type TensorArgument, wholeShape } from "./tensor-arguments.ts";

export interface RunSizes {
  readonly sizes: Sizes;
  readonly scalars: ReadonlyMap<string, number>;
  /** Shapes of the whole inputs. */
  readonly inputShapes: readonly (readonly number[])[];
}

/** Throws `input-count`, `input-shape`, `device-count`, `size-mismatch` and `size-contradicts-mesh`. */
export function runSizes(
  { tensors: all, inputs: ids }: Signature,
  inputs: readonly TensorArgument[],
  devices: number,
  given: { readonly sizes?: NamedNumbers; readonly scalars?: NamedNumbers },
): RunSizes {
  const tensors = ids.map((id) => at(all, id));
  requireCount("input", tensors, inputs);
  const inputShapes = tensors.map((tensor, i) => wholeShape("input", i, tensor, at(inputs, i), devices));
  const sizes = new Map([
    ...sizesFromMeshes(all),
    ...numbersByName(given.sizes),
    ...sizesFromShapes(tensors, inputShapes),
  ]);
  requireMeshSizes(all, sizes);
  tensors.forEach((tensor, i) => requireShardShapes("input", i, tensor, at(inputShapes, i), at(inputs, i)));
  return { sizes, scalars: numbersByName(given.scalars), inputShapes };
}

/** Equal for equal sizes and scalars, in any order. */
export function sizesKey(sizes: Sizes, scalars: ReadonlyMap<string, number>): string {
  const sorted = (numbers: ReadonlyMap<string, number>): string =>
    [...numbers]
      .map((entry) => entry.join("="))
      .sort()
      .join(" ");
  return `${sorted(sizes)} scalars ${sorted(scalars)}`;
}
