/** What every format of model files becomes. */
import type { Diagnostic } from "../diagnostics/diagnostic.ts";
import type { Fusion } from "../ir/api/fusion.ts";
import type { GradientRequest } from "../ir/api/gradients.ts";
import type { TensorView } from "../ir/api/tensor-view.ts";
import type { Tensor } from "../numerics/tensor/host-tensor.ts";

/** What a refusal says. */
export type ModelFault = Required<Pick<Diagnostic, "message" | "found" | "expected" | "help">>;

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
  /** The gradients that the Fusion has not: absent unless they are asked for apart. */
  readonly apart?: ImportedGradients;
}

/** What is to be differentiated. The cotangents are the last inputs of the Fusion. */
export interface ImportedGradients {
  readonly request: GradientRequest & { readonly cotangents: readonly TensorView[] };
  /** Of the gradients, in the order of `wrt`: `grad.up.weight`. */
  readonly names: readonly string[];
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
  /** Absent of a format that does not tell parameters from arguments. A constant has no gradient. */
  readonly role?: "argument" | "parameter" | "constant";
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
  /** The inputs whose gradients are added, by name; if not given, parameters, or all floats where none is called so. */
  readonly wrt?: readonly string[];
  /** Leaves the gradients out of the Fusion: the model says what they are of, for `splitBackward`. */
  readonly apart?: boolean;
  /** Whether what depends on constants alone is evaluated while the file is read, and is an input then; true if not given. */
  readonly fold?: boolean;
}
