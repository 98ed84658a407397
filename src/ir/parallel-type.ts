/**
 * What runs the indices of an axis: nothing in particular (Serial), one iteration each of a host loop over streams
 * (Stream), or one device each along a dimension of the mesh (DIDx innermost, then DIDy, DIDz).
 */
export type DIDType = "DIDx" | "DIDy" | "DIDz";
export type ParallelType = "Serial" | "Stream" | DIDType;

export const didTypes: readonly DIDType[] = ["DIDx", "DIDy", "DIDz"];

/** Whether the type distributes an axis over devices. */
export function isDID(type: ParallelType): type is DIDType {
  return type === "DIDx" || type === "DIDy" || type === "DIDz";
}
