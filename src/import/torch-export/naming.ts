/** What tensors are to the user of a model: their names, and the lines that made them. */
import { replaceTensor } from "../../ir/api/fusion-builder.ts";
import type { Fusion } from "../../ir/api/fusion.ts";
import { fusionState, internals } from "../../ir/api/handle.ts";
import { TensorView } from "../../ir/api/tensor-view.ts";
import type { GraphNode } from "./graph.ts";

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
