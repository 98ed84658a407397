/**
 * How the indices of an axis run: Serial (no assignment), Stream (one iteration of a host loop over streams per index),
 * or a DID type (one device per index, along that dimension of the mesh).
 */
import { keysOf } from "../support/invariant.ts";

/**
 * The DID types, innermost dimension of a mesh first, and how dumps print them. A row is all that a further dimension
 * needs. nvFuser has x, y and z. The others go on with w, as coordinates do, then down the alphabet. A letter and not a
 * number, because the number of the axis follows in a dump: `ideviceIdx.w12{2}`.
 */
export const deviceIndices = {
  DIDx: "deviceIdx.x",
  DIDy: "deviceIdx.y",
  DIDz: "deviceIdx.z",
  DIDw: "deviceIdx.w",
  DIDv: "deviceIdx.v",
  DIDu: "deviceIdx.u",
} as const;

export type DIDType = keyof typeof deviceIndices;
export type ParallelType = "Serial" | "Stream" | DIDType;

export const didTypes: readonly DIDType[] = keysOf(deviceIndices);
export const parallelTypes: readonly ParallelType[] = ["Serial", "Stream", ...didTypes];

/** The user's name of a mesh dimension, such as `tp`. Editors still complete the DID types beside it. */
export type DimensionName = string & Record<never, never>;

/** Whether the type distributes an axis over devices. */
export function isDID(type: ParallelType): type is DIDType {
  return type !== "Serial" && type !== "Stream";
}
