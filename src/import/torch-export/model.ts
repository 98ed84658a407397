/** What reading a file of torch.export gives: a Fusion, and what its tensors are in the model. */
import type { Fusion } from "../../ir/api/fusion.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import type { Tensor } from "../../numerics/tensor/host-tensor.ts";
import type { TensorId } from "../../ir/domain.ts";
import type { ExportedGraph } from "./graph.ts";
import type { GroupCollective } from "./group-collective.ts";

/** An input of the Fusion, in its order: user inputs first, then parameters and others as ops read them. */
export interface ModelInput {
  /** The name of the argument of forward, the parameter or the buffer. */
  readonly name: string;
  /** A `folded` input holds what the model computes from constants. */
  readonly kind: "user" | "parameter" | "buffer" | "constant" | "folded";
  readonly tensor: TensorView;
  /** The values in the file; null of user inputs, and of models that were exported without weights. */
  readonly read: () => Tensor | null;
}

export interface ModelOutput {
  /** `y` of a model with one output, otherwise `out0`, `out1` and so on. */
  readonly name: string;
  readonly tensor: TensorView;
}

/** A size that export left open. */
export interface ModelSize {
  /** As PyTorch calls it: `s27`. */
  readonly name: string;
  readonly min: number | null;
  readonly max: number | null;
  /** That of the example with which the model was exported. */
  readonly example: number | null;
}

export interface ExportedModel {
  /** Of the file, for messages. */
  readonly path: string;
  readonly fusion: Fusion;
  readonly inputs: readonly ModelInput[];
  readonly outputs: readonly ModelOutput[];
  /** By the name of the extent in the Fusion: `i0`. */
  readonly sizes: ReadonlyMap<string, ModelSize>;
  /** Without in-place ops. */
  readonly graph: ExportedGraph;
  /** The tensor of a value of the graph; null for one that the program does not compute. */
  readonly tensorOf: (value: string) => TensorView | null;
  /** The collectives that are still to run, by the input of the Fusion that stands for the result. */
  readonly collectives: ReadonlyMap<TensorId, GroupCollective>;
}
