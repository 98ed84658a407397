/** What reading a file of torch.export gives: a Fusion, and what its tensors are in the model. */
import type { Fusion } from "../../ir/api/fusion.ts";
import { TensorView } from "../../ir/api/tensor-view.ts";
import type { Tensor } from "../../numerics/tensor/host-tensor.ts";
import type { TensorId } from "../../ir/domain.ts";
import type { ExportedGraph, GraphNode } from "./graph.ts";
import type { ImportedSize } from "../model.ts";
import type { GroupCollective } from "./group-collective.ts";
import { replaceTensor } from "../../ir/api/fusion-builder.ts";
import { fusionState, internals } from "../../ir/api/handle.ts";

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

export interface ExportedModel {
  /** Of the file, for messages. */
  readonly path: string;
  readonly fusion: Fusion;
  readonly inputs: readonly ModelInput[];
  readonly outputs: readonly ModelOutput[];
  /** By the name of the extent in the Fusion: `i0`. */
  readonly sizes: ReadonlyMap<string, ImportedSize>;
  /** Without in-place ops. */
  readonly graph: ExportedGraph;
  /** The tensor of a value of the graph; null for one that the program does not compute. */
  readonly tensorOf: (value: string) => TensorView | null;
  /** The collectives that are still to run, by the input of the Fusion that stands for the result. */
  readonly collectives: ReadonlyMap<TensorId, GroupCollective>;
}

/* What tensors are to the user of a model: their names, and the lines that made them. */

/** Names the tensor after the module and the value, unless it has a name: an op that only looks at it gives it no other. */
export function described(view: TensorView, node: GraphNode, value: string): TensorView {
  return view.name === null ? withName(view, nameIn(node, value)) : view;
}

function nameIn({ modules }: GraphNode, value: string): string {
  const path = modules.at(-1)?.path ?? "";
  return path === "" ? value : `${path}/${value}`;
}

const longestName = 64;

/** Names the tensor, by the end of a name that is too long. A name of another form or a second one gets `_`. */
export function withName(view: TensorView, name: string): TensorView {
  const { names } = view[internals].builder;
  const plain = name.replaceAll(/[^\w./-]/gu, "_").slice(-longestName);
  const own = /^(?:T\d+$|[^A-Za-z_])/u.test(plain) ? `_${plain.slice(1 - longestName)}` : plain;
  return names.has(own) ? view : view.named(own);
}

/** The line of the model, and numbered names for those that are no result, for the tensors from `first` on. */
export function locate({ [fusionState]: builder }: Fusion, first: number, node: GraphNode): void {
  const { source, outputs } = node;
  let unnamed = 0;
  for (const { id } of builder.tensors.slice(first)) {
    const view = new TensorView({ builder, id });
    if (view.name === null) withName(view, `${nameIn(node, outputs[0] ?? "")}-${++unnamed}`);
    const { origin } = view.data();
    // A constant that the node reads first has the line of its own node.
    if (source === null || origin?.source !== undefined) continue;
    replaceTensor(builder, { ...view.data(), origin: { ...origin, source } });
  }
}
