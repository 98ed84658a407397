/**
 * Sizes of symbolic extents by printed name (`i0`). They come from input shapes, from the meshes of sharded axes, or
 * from the user. All shapes here are those of whole tensors, not of one device's shard.
 */
import { fail, type Place } from "../diagnostics/diagnostic.ts";
import { dtypes } from "../numerics/dtype.ts";
import { at } from "../support/invariant.ts";
import { devicesAlong } from "./device-mesh.ts";
import { isDID, type Tensor, withoutReductions } from "./domain.ts";
import { printIterDomain, printTensor } from "./print-tensor.ts";
import { constantValue } from "./scalar/fold.ts";
import { evaluateScalar, leavesOf, printScalar, type Scalar } from "./scalar/scalar.ts";

export type Sizes = ReadonlyMap<string, number>;

/** The sizes that input shapes determine. Throws `input-count`, `input-shape`, `size-mismatch`. */
export function sizesFromShapes(
  inputs: readonly Tensor[],
  shapes: readonly (readonly number[])[],
): Map<string, number> {
  if (inputs.length !== shapes.length) {
    fail("input-count", "the number of inputs is wrong", {
      found: String(shapes.length),
      expected: `${inputs.length}: ${inputs.map((tensor) => printTensor(tensor)).join(", ")}`,
      help: "pass one tensor per input of the fusion, in order",
    });
  }
  const sizes = new Map<string, number>();
  inputs.forEach((tensor, position) => {
    bindShape(tensor, at(shapes, position), sizes);
  });
  inputs.forEach((tensor, position) => {
    requireShape(tensor, at(shapes, position), sizes);
  });
  return sizes;
}

function bindShape(tensor: Tensor, shape: readonly number[], sizes: Map<string, number>): void {
  const axes = withoutReductions(tensor.domain.logical);
  const place: Place = { kind: "tensor", text: printTensor(tensor) };
  const fits =
    axes.length === shape.length &&
    axes.every(({ extent }, i) => {
      const size = at(shape, i);
      return Number.isSafeInteger(size) && size >= 0 && (extent.kind !== "constant" || extent.value === size);
    });
  if (!fits) {
    fail("input-shape", `an input does not have the shape of T${tensor.id}`, {
      place,
      found: `[${shape.join(", ")}]`,
      expected: `[${axes.map((axis) => printScalar(axis.extent)).join(", ")}]`,
      help: "pass a tensor of this shape",
    });
  }
  axes.forEach(({ extent }, i) => {
    if (extent.kind !== "symbol") return;
    const size = at(shape, i);
    const bound = sizes.get(extent.name);
    if (bound !== undefined && bound !== size) {
      fail("size-mismatch", `${extent.name} has two sizes`, {
        place,
        found: `${bound} and ${size}`,
        expected: `one size for all axes of extent ${extent.name}`,
        help: "pass inputs whose shapes agree",
      });
    }
    sizes.set(extent.name, size);
  });
}

/** Checks the extents that are expressions of other inputs' symbols. */
function requireShape(tensor: Tensor, shape: readonly number[], sizes: Sizes): void {
  withoutReductions(tensor.domain.logical).forEach(({ extent }, i) => {
    if (extent.kind !== "binary") return;
    const size = evaluateScalar(extent, (name) => sizes.get(name));
    if (size === undefined || size === shape[i]) return;
    fail("size-mismatch", `axis ${i} of T${tensor.id} does not have the size of its extent`, {
      place: { kind: "tensor", text: printTensor(tensor) },
      found: String(shape[i]),
      expected: `${size}, the value of ${printScalar(extent)}`,
      help: "pass inputs whose shapes agree",
    });
  });
}

/** The sizes that meshes determine: a sharded axis has the mesh's size along its parallel type. */
export function sizesFromMeshes(tensors: readonly Tensor[]): Map<string, number> {
  const sizes = new Map<string, number>();
  // The table of a unit may have gaps.
  for (const { domain, mesh } of Object.values(tensors)) {
    for (const { extent, parallelType } of domain.logical) {
      if (mesh === null || extent.kind !== "symbol" || !isDID(parallelType) || !mesh.hasAxis(parallelType)) continue;
      sizes.set(extent.name, mesh.size(parallelType));
    }
  }
  return sizes;
}

/**
 * Checks known sizes against shardings. Throws `size-contradicts-mesh` if an axis or part with a DID type differs in
 * size from the mesh.
 */
export function requireMeshSizes(tensors: readonly Tensor[], sizes: Sizes): void {
  for (const tensor of tensors) {
    const { mesh, domain } = tensor;
    if (mesh === null || !domain.loop.some((axis) => isDID(axis.parallelType))) continue;
    for (const axis of domain.loop) {
      if (!isDID(axis.parallelType)) continue;
      const size = evaluateScalar(axis.extent, (name) => sizes.get(name));
      const devices = mesh.size(axis.parallelType);
      if (size === undefined || size === devices) continue;
      fail({
        code: "size-contradicts-mesh",
        message: `axis ${printIterDomain(axis)} and the mesh differ in size along ${mesh.nameOf(axis.parallelType)}`,
        place: { kind: "tensor", text: printTensor(tensor) },
        found: `size ${size}, ${devicesAlong(mesh, axis.parallelType)}`,
        expected: `size ${devices}`,
        help: "pass inputs whose sharded axes have the size of the mesh",
      });
    }
  }
}

/** The value of an extent. Throws `size-missing` with the names of the symbols that have no size. */
export function evaluateExtent(extent: Scalar, sizes: Sizes, place?: () => Place): number {
  const value = evaluateScalar(extent, (name) => sizes.get(name));
  if (value !== undefined) return value;
  const missing = [...leavesOf(extent)].filter((name) => !sizes.has(name));
  return fail("size-missing", `${missing.join(", ")} ${missing.length === 1 ? "has" : "have"} no size`, {
    ...(place === undefined ? {} : { place: place() }),
    found: `sizes for ${sizes.size === 0 ? "no extent" : [...sizes.keys()].join(", ")}`,
    expected: `a size for ${missing.join(", ")}`,
    help: `give ${missing.map((name) => `${name} a size`).join(" and ")}, by the extent's printed name`,
  });
}

/** The tensor's whole shape, without reduced axes. Throws `size-missing`. */
export function shapeOf(tensor: Tensor, sizes: Sizes): readonly number[] {
  return withoutReductions(tensor.domain.logical).map((axis) =>
    evaluateExtent(axis.extent, sizes, () => ({ kind: "tensor", text: printTensor(tensor) })),
  );
}

// The size of a tensor as far as it is known when a program is lowered.

/** Bytes of the whole tensor, with 1 for every extent that is known only at run time. */
export function knownBytes({ dtype, domain }: Tensor): number {
  return withoutReductions(domain.logical).reduce<number>(
    (product, { extent }) => product * (constantValue(extent) ?? 1),
    dtypes[dtype].bytes,
  );
}
