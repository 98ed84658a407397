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
}
