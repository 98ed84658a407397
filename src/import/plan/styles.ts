/** The words of Hugging Face's tensor parallel plans for a module: how its parameters and its results lie. */

/**
 * Which axis of a parameter is cut: that of the outputs of a linear map, that of its inputs, or none. A line that names a
 * parameter itself, such as the weights of all experts [E, out, in], means its last axis but one, and its last.
 */
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
  packed_rowwise: { cut: "in", packed: true, output: null },
  rowwise: { cut: "in", packed: false, output: null },
  rowwise_split_input: { cut: "in", packed: false, output: null },
  rowwise_rep: { cut: "in", packed: false, output: null },
  embedding_colwise: { cut: "out", packed: false, output: null },
  embedding_rowwise: { cut: "in", packed: false, output: null },
  sequence_parallel: { cut: null, packed: false, output: "sequence" },
  all_reduce: { cut: null, packed: false, output: "replicated" },
  moe_tp_experts: { cut: null, packed: false, output: null },
  mla_kv_a_proj: { cut: null, packed: false, output: null },
  replicated: { cut: null, packed: false, output: null },
  replicated_with_grad_allreduce: { cut: null, packed: false, output: null },
} as const satisfies Readonly<Record<string, StyleFacts>>;

export type Style = keyof typeof styles;

export function isStyle(text: string): text is Style {
  return Object.hasOwn(styles, text);
}
