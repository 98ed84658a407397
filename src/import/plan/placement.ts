/** Placements in DTensor's words, one per dimension of a mesh, and the annotations of Braid that they are. */
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { at } from "../../support/invariant.ts";

/** `packed`: the axis holds so many tensors one after the other, each of which is cut. */
export type Placement =
  | { readonly kind: "shard"; readonly axis: number; readonly packed: number }
  | { readonly kind: "replicate" }
  /** Sums that are still to be added, where Braid may choose. */
  | { readonly kind: "partial" };

export const replicate: Placement = { kind: "replicate" };

export const shard = (axis: number, packed = 1): Placement => ({ kind: "shard", axis, packed });

export const placementForms = "Shard(0), Replicate() or Partial()";

/** `Shard(0)`, `Shard(dim=-1)`, `Replicate()`, `Partial()`, and what DTensor prints for them; null for another text. */
export function parsePlacement(text: string): Placement | null {
  const [, axis] = /^S(?:hard)?\((?:dim=)?(-?\d+)\)$/u.exec(text) ?? [];
  if (axis !== undefined) return shard(Number(axis));
  if (/^(?:R|Replicate\(\))$/u.test(text)) return replicate;
  return /^(?:P|Partial\((?:sum)?\))$/u.test(text) ? { kind: "partial" } : null;
}

export function placementText(placement: Placement): string {
  switch (placement.kind) {
    case "shard":
      return placement.packed === 1 ? `Shard(${placement.axis})` : `Shard(${placement.axis}) of ${placement.packed}`;
    case "replicate":
      return "Replicate()";
    case "partial":
      return "Partial()";
  }
}

/** The placements with axes counted from 0; null if the tensor has no such axis. */
export function resolved(placements: readonly Placement[], rank: number): readonly Placement[] | null {
  const own = placements.map((each) =>
    each.kind === "shard" && each.axis < 0 ? { ...each, axis: each.axis + rank } : each,
  );
  return own.every((each) => each.kind !== "shard" || (each.axis >= 0 && each.axis < rank)) ? own : null;
}

/** Puts the tensor on the mesh. An axis that several dimensions cut is cut by the outermost one first, as in DTensor. */
export function placeTensor(tensor: TensorView, mesh: DeviceMesh, placements: readonly Placement[]): void {
  tensor.setDeviceMesh(mesh);
  // From the last axis on, so that splits do not move the axes that are still to be cut.
  for (let axis = tensor.rank - 1; axis >= 0; axis--) {
    let position = axis;
    placements.forEach((each, i) => {
      if (each.kind !== "shard" || each.axis !== axis) return;
      if (each.packed > 1) tensor.outerSplit(position++, each.packed);
      tensor.outerSplit(position, at(mesh.shape, i)).parallelize(at(mesh.names, i));
      position++;
    });
  }
}
