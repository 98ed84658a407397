/**
 * Prints tensors and axes as nvFuser's dumps do: `T2_g_float[iStreamIdx6{i0}, iS7{i6}, rS10{i4}] (DeviceMesh{0 1})`. A
 * tensor prints its loop domain. `axis =` of a slice prints an axis of the logical domain with `printIterDomain`.
 */
import { dtypes } from "../numerics/dtype.ts";
import type { IterDomain, IterType, MemoryType, ParallelType, Tensor } from "./domain.ts";
import { deviceIndices } from "./parallel-type.ts";
import { defaultSpelling, type IrSpelling, printScalar } from "./scalar/scalar.ts";

/** `host/syntax` parses with the same tables. */
export const iterLetters: { readonly [K in IterType]: string } = { iteration: "i", reduction: "r", broadcast: "b" };

export const memoryLetters: { readonly [K in MemoryType]: string } = { local: "l", global: "g", symmetric: "sym" };

export function printIterDomain(axis: IterDomain, spelling: IrSpelling = defaultSpelling): string {
  const parallel = parallelText(axis.parallelType, spelling);
  return `${iterLetters[axis.iterType]}${parallel}${axis.id}{${printScalar(axis.extent, spelling)}}`;
}

function parallelText(type: ParallelType, spelling: IrSpelling): string {
  if (type === "Serial") return "S";
  return type === "Stream" ? spelling.stream : deviceIndices[type];
}

/** Without `withMesh` the mesh is omitted, as dumps of 2025-04 do for slices. */
export function printTensor(tensor: Tensor, spelling: IrSpelling = defaultSpelling, withMesh = true): string {
  const axes = tensor.domain.loop.map((axis) => printIterDomain(axis, spelling)).join(", ");
  const mesh = withMesh && tensor.mesh !== null ? ` (${tensor.mesh.toString()})` : "";
  return `T${tensor.id}_${memoryLetters[tensor.memory]}_${dtypes[tensor.dtype].names.printed}[${axes}]${mesh}`;
}
