/** What every format of model files becomes. */
import type { Fusion } from "../ir/api/fusion.ts";
import type { Tensor } from "../numerics/tensor/host-tensor.ts";

export interface ImportedModel {
  readonly fusion: Fusion;
  /** How many devices the file's meshes name; null for a file without a mesh. */
  readonly devices: number | null;
  /** In the order of the Fusion's inputs. */
  readonly inputs: readonly ImportedInput[];
  /** The names of the outputs, in the order of the Fusion's. */
  readonly outputs: readonly string[];
  /** The extents that the file leaves open, by their names in the Fusion (`i0`). Absent if there are none. */
  readonly sizes?: ReadonlyMap<string, ImportedSize>;
}

/** A size that a run gives. */
export interface ImportedSize {
  /** As the framework calls it. */
  readonly name: string;
  readonly min: number | null;
  readonly max: number | null;
  /** That of the arguments with which the file was written. */
  readonly example: number | null;
}

export interface ImportedInput {
  /** The names that files of tensors may use, the one of the model first. */
  readonly names: readonly string[];
  /** The value of an input that is a constant or a parameter of the file; null for one that a run gives. */
  readonly value: Tensor | null;
}

export interface ImportOptions {
  /** The name of the file in diagnostics; "model" if not given. */
  readonly file?: string;
  /** The function to read of a file that has several; `main` if it has that, or the only one. */
  readonly entry?: string;
  /** How a model without shardings lies on devices: the text of a plan and its name, or the plan of its family. */
  readonly plan?: "auto" | { readonly text: string; readonly file: string };
  /** For `plan: "auto"`: the number of devices; 1 if not given. */
  readonly devices?: number;
  /** Adds the gradients of the outputs; this is the name of the input that is their cotangent. */
  readonly gradients?: string;
}
