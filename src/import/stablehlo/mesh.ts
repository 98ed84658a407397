/** Meshes of a module, whose axes are dimensions of a DeviceMesh. */
import type { DeviceMesh } from "../../ir/device-mesh.ts";

export interface Meshes {
  readonly byName: ReadonlyMap<string, Mesh>;
  /** Of all dimensions of all meshes, by name. */
  readonly sizes: Map<string, number>;
}

export interface Mesh {
  /** Null for a mesh without dimensions, whose shardings say nothing. */
  readonly devices: DeviceMesh | null;
  /** The dimensions of each axis of the text, outermost first. */
  readonly axes: ReadonlyMap<string, readonly Dimension[]>;
}

export interface Dimension {
  readonly name: string;
  readonly size: number;
  /** The product of the dimensions of the same axis that are further out. */
  readonly before: number;
}
