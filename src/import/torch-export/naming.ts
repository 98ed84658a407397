/** What tensors are to the user of a model: their names, and the lines that made them. */
import { replaceTensor } from "../../ir/api/fusion-builder.ts";
import type { Fusion } from "../../ir/api/fusion.ts";
import { fusionState, internals } from "../../ir/api/handle.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import type { GraphNode } from "./graph.ts";

/** Names the tensor after the module and the value, unless it has a name: an op that only looks at it gives it no other. */
export function described(view: TensorView, { modules }: GraphNode, value: string): TensorView {
  const path = modules.at(-1)?.path ?? "";
  return view.name === null ? withName(view, path === "" ? value : `${path}/${value}`) : view;
}

const longestName = 64;

/** Names the tensor, by the end of a name that is too long. A name of another form or a second one gets `_`. */
export function withName(view: TensorView, name: string): TensorView {
  const { names } = view[internals].builder;
  const plain = name.replaceAll(/[^\w./-]/gu, "_").slice(-longestName);
  const own = /^(?:T\d+$|[^A-Za-z_])/u.test(plain) ? `_${plain.slice(1 - longestName)}` : plain;
  return names.has(own) ? view : view.named(own);
}

/** The line of the model, for the tensors from `first` on. */
export function locate(fusion: Fusion, first: number, { source }: GraphNode): void {
  if (source === null) return;
  const builder = fusion[fusionState];
  for (const tensor of builder.tensors.slice(first)) {
    replaceTensor(builder, { ...tensor, origin: { ...tensor.origin, source } });
  }
}
