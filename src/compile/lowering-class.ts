/**
 * Which ranks lower to equal host programs. Lowering asks three things of a rank: whether it is in a mesh, its team
 * along a mesh dimension, and whether it is rank 0, which computes the tensors without a mesh. On the mesh 0 .. D-1 the
 * team is the mesh, and a rank's position prints as `rank`, so all its ranks get one program.
 */
import type { DeviceMesh } from "../ir/device-mesh.ts";
import type { Tensor } from "../ir/domain.ts";

/** Ranks with equal keys have equal host programs. */
export function loweringClasses(tensors: readonly Tensor[]): (rank: number) => string {
  const meshes = distinctMeshes(tensors);
  const [mesh] = meshes;
  const isOneRange = meshes.length === 1 && mesh !== undefined && isRange(mesh);
  const hasUnplaced = tensors.some((tensor) => tensor.mesh === null);
  return (rank) => {
    const isWithin = meshes.some((each) => each.has(rank));
    // Steps between two meshes, and teams of other meshes, differ from rank to rank.
    if (isWithin && !isOneRange) return `rank ${rank}`;
    return `${isWithin ? "in" : "outside"}${hasUnplaced && rank === 0 ? ", first" : ""}`;
  };
}

function distinctMeshes(tensors: readonly Tensor[]): readonly DeviceMesh[] {
  const distinct: DeviceMesh[] = [];
  for (const mesh of new Set(tensors.map((tensor) => tensor.mesh))) {
    if (mesh !== null && !distinct.some((known) => known.equals(mesh))) distinct.push(mesh);
  }
  return distinct;
}

function isRange({ shape, devices }: DeviceMesh): boolean {
  return shape.length === 1 && devices.every((device, position) => device === position);
}
