/** The words of Hugging Face's tensor parallel plans for a module: how its parameters and its results lie. */

/** Which axis of a parameter is cut: that of the outputs of a linear map, that of its inputs, or none. */
export type Cut = "out" | "in" | null;

export interface StyleFacts {
  /** Of weights. A bias has the axis of the outputs alone. */
  readonly cut: Cut;
  /** The weight holds several maps one after the other, each of which is cut. */
  readonly packed: boolean;
  /** What the module returns; null where it follows from the weights. */
  readonly output: "replicated" | "sequence" | null;
}

export const styles = {
  colwise: { cut: "out", packed: false, output: null },
  packed_colwise: { cut: "out", packed: true, output: null },
  colwise_gather_output: { cut: "out", packed: false, output: "replicated" },
  colwise_rep: { cut: "out", packed: false, output: "replicated" },
  rowwise: { cut: "in", packed: false, output: null },
  rowwise_split_input: { cut: "in", packed: false, output: null },
  rowwise_rep: { cut: "in", packed: false, output: null },
  embedding_colwise: { cut: "out", packed: false, output: null },
  embedding_rowwise: { cut: "in", packed: false, output: null },
  sequence_parallel: { cut: null, packed: false, output: "sequence" },
  all_reduce: { cut: null, packed: false, output: "replicated" },
  replicated: { cut: null, packed: false, output: null },
  replicated_with_grad_allreduce: { cut: null, packed: false, output: null },
} as const satisfies Readonly<Record<string, StyleFacts>>;

export type Style = keyof typeof styles;

export function isStyle(text: string): text is Style {
  return Object.hasOwn(styles, text);
}
