/**
 * Attention as a graph of operations that cuDNN recognizes and runs as one kernel. Operations, their order, the dtypes
 * and which tensors have memory are those of cudnn-frontend (CompositeSDPANode, CompositeSDPABackwardNode): cuDNN has
 * kernels for these graphs only.
 *
 * In the backward graph, dS k is written to dq at once. The usual form adds parts of it by atomics, in any order.
 */
import { type AttentionKernel, biasOf, hasKeyLengths } from "../../../commands/attention.ts";
import { fail } from "../../../diagnostics/diagnostic.ts";
import { cudnnObstacle, decodeObstacle } from "../../../ir/ops/kinds/attention/cudnn-obstacle.ts";
import { at, invariant } from "../../../support/invariant.ts";
import {
  rowMajorStrides,
  createCudnnGraph,
  exchanged,
  type CudnnGraph,
  type GraphBuilder,
  type GraphTensor,
  type GraphType,
} from "./graph.ts";
import type { AttentionLayout, Four, PlacedOperand } from "./layout.ts";

/** Throws `kernel-opaque` for an attention that neither cuDNN nor the kernel of few queries takes. */
export function attentionType(kernel: AttentionKernel): "half" | "bfloat16" {
  const isForward = kernel.kind === "sdpa";
  const { dtype, shape: q } = at(kernel.inputs, isForward ? 0 : 1);
  const [k, v] = [1, 2].map((i) => at(kernel.inputs, i + (isForward ? 0 : 1)).shape);
  const { causal, window, scale } = kernel;
  const shapes = { dtype, q, k: k ?? [], v: v ?? [] };
  const obstacle = hasKeyLengths(kernel)
    ? decodeObstacle(shapes)
    : cudnnObstacle({ ...shapes, causal, window, scale, isBackward: !isForward });
  if (obstacle !== null) {
    const who = hasKeyLengths(kernel) ? "the kernel of few queries" : "cuDNN";
    fail("kernel-opaque", `${who} does not take this ${kernel.kind}`, {
      found: obstacle.found,
      expected: obstacle.expected,
      help: "lower the program with --schedule attention=ops",
    });
  }
  invariant(dtype === "half" || dtype === "bfloat16", "cuDNN takes 16-bit floats", { dtype });
  return dtype;
}

export function attentionGraph(kernel: AttentionKernel, type: GraphType, layout: AttentionLayout): CudnnGraph {
  const graph = createCudnnGraph();
  const build = kernel.kind === "sdpa" ? buildForward : buildBackward;
  build({ graph, kernel, type, layout });
  return graph.graph();
}

/** What is added to the scores has the dtype of the operands, or that of their sums. */
function biasIn(graph: GraphBuilder, kernel: AttentionKernel, placed: PlacedOperand | undefined): GraphTensor | null {
  if (placed === undefined) return null;
  const dtype = biasOf(kernel)?.dtype;
  invariant(dtype === "half" || dtype === "bfloat16" || dtype === "float", "cuDNN takes a bias of floats", { dtype });
  return graph.operand("bias", dtype, kernel.inputs.length - 1, placed);
}

interface Building {
  readonly graph: GraphBuilder;
  readonly kernel: AttentionKernel;
  readonly type: GraphType;
  readonly layout: AttentionLayout;
}

function buildForward({ graph, kernel, type, layout }: Building): void {
  const { inputs, outputs } = layout;
  const q = graph.operand("q", type, 0, at(inputs, 0));
  const k = graph.operand("k", type, 1, exchanged(at(inputs, 1)));
  const v = graph.operand("v", type, 2, at(inputs, 2));
  const bias = biasIn(graph, kernel, inputs[3]);
  const output = graph.operand("output", type, inputs.length, at(outputs, 0));
  const statistics = graph.operand("logsumexp", "float", inputs.length + 1, at(outputs, 1));
  const scores = masked(graph, kernel, scoresOf(graph, kernel, [q, k], bias).scores);
  const rows: Four = [scores.dims[0], scores.dims[1], scores.dims[2], 1];
  const most = graph.reduction("largest score", "MAX", scores, { dims: rows });
  const differences = graph.pointwise("differences", "SUB", [scores, most]);
  const exponentials = graph.pointwise("exponentials", "EXP", [differences]);
  const sums = graph.reduction("sums", "ADD", exponentials, { dims: rows });
  const logarithms = graph.pointwise("logarithms", "LOG", [sums]);
  graph.pointwise("logsumexp", "ADD", [most, logarithms], { to: statistics });
  const probabilities = graph.pointwise("probabilities", "DIV", [exponentials, sums], { type });
  graph.matmul("output", probabilities, v, { to: output });
}

function buildBackward({ graph, kernel, type, layout }: Building): void {
  const { inputs, outputs } = layout;
  const g = graph.operand("g", type, 0, at(inputs, 0));
  const q = graph.operand("q", type, 1, at(inputs, 1));
  const k = graph.operand("k", type, 2, exchanged(at(inputs, 2)));
  const v = graph.operand("v", type, 3, exchanged(at(inputs, 3)));
  const output = graph.operand("output", type, 4, at(inputs, 4));
  const statistics = graph.operand("logsumexp", "float", 5, at(inputs, 5));
  const bias = biasIn(graph, kernel, inputs[6]);
  const dq = graph.operand("dq", type, inputs.length, at(outputs, 0));
  const dk = graph.operand("dk", type, inputs.length + 1, at(outputs, 1));
  const dv = graph.operand("dv", type, inputs.length + 2, at(outputs, 2));
  const rows: Four = [q.dims[0], q.dims[1], q.dims[2], 1];

  const weighted = graph.pointwise("g output", "MUL", [g, output]);
  const totals = graph.reduction("totals", "ADD", weighted, { dims: rows });
  const kept = graph.scratch("kept totals", rows);
  graph.pointwise("kept totals", "MUL", [totals, graph.number("one", "float", 1)], { to: kept });

  const { scores, scale } = scoresOf(graph, kernel, [q, k], bias);
  const differences = graph.pointwise("differences", "SUB", [scores, statistics]);
  const probabilities = graph.pointwise("probabilities", "EXP", [masked(graph, kernel, differences)]);
  const across = { ...exchanged(probabilities), type };
  overHeads(graph, "dv", graph.reshape("probabilities^T", probabilities, across), g, dv);

  const dp = graph.matmul("g v^T", g, v);
  const centered = graph.pointwise("dp - totals", "SUB", [dp, kept]);
  const ds = graph.pointwise("ds", "MUL", [graph.pointwise("ds / scale", "MUL", [centered, probabilities]), scale]);
  overHeads(graph, "dk", graph.reshape("ds^T", ds, across), q, dk);
  graph.matmul("dq", ds, graph.reshape("keys", k, { ...exchanged(k), type }), { to: dq });
}

/** a b, added over the heads that share `to`'s head. */
function overHeads(graph: GraphBuilder, name: string, a: GraphTensor, b: GraphTensor, to: GraphTensor): void {
  if (a.dims[1] === to.dims[1]) {
    graph.matmul(name, a, b, { to });
    return;
  }
  const dims: Four = [a.dims[0], a.dims[1], a.dims[2], b.dims[3]];
  const all = graph.matmul(`${name} of all heads`, a, b, { type: to.type, dims, strides: rowMajorStrides(dims) });
  graph.reduction(name, "ADD", all, { to });
}

/** scale q k^T, and the bias added to it. */
function scoresOf(
  graph: GraphBuilder,
  kernel: AttentionKernel,
  [q, k]: readonly [GraphTensor, GraphTensor],
  bias: GraphTensor | null,
): { readonly scores: GraphTensor; readonly scale: GraphTensor } {
  const products = graph.matmul("q k^T", q, k);
  const scale = graph.number("scale", "float", kernel.scale);
  const scaled = graph.pointwise("scores", "MUL", [products, scale]);
  return { scores: bias === null ? scaled : graph.pointwise("biased", "ADD", [scaled, bias]), scale };
}

/** The scores, and -infinity where a row does not see a key. */
function masked(graph: GraphBuilder, { causal, window }: AttentionKernel, scores: GraphTensor): GraphTensor {
  if (causal === null) return scores;
  const index = (of: GraphTensor, name: string, axis: number): GraphTensor =>
    graph.pointwise(name, "GEN_INDEX", [of], { type: "int32", axis });
  const where = (of: GraphTensor, mode: "CMP_GT" | "CMP_GE", a: GraphTensor, b: GraphTensor): GraphTensor => {
    const isSeen = graph.pointwise("is seen", mode, [a, b], { type: "bool", compute: "bool" });
    return graph.pointwise("masked", "BINARY_SELECT", [of, graph.number("-infinity", "float", "-infinity"), isSeen]);
  };
  const [first, column] = [index(scores, "row", 2), index(scores, "column", 3)];
  const row = causal === "topLeft" ? first : lastRowSeesAll(graph, first, scores);
  const before = where(scores, "CMP_GE", row, column);
  if (window === null) return before;
  // As cudnn-frontend has it: a mask of its own, with a sum in float.
  const [own, start] = [index(before, "row", 2), index(before, "column", 3)];
  const [, , rows, keys] = scores.dims;
  const reach = graph.number("window", "float", causal === "topLeft" ? window : window - keys + rows);
  return where(before, "CMP_GT", graph.pointwise("column + window", "ADD", [start, reach]), own);
}

function lastRowSeesAll(graph: GraphBuilder, row: GraphTensor, { dims: [, , rows, keys] }: GraphTensor): GraphTensor {
  const integers = { type: "int32", compute: "int32" } as const;
  const after = graph.pointwise("row + keys", "ADD", [row, graph.number("keys", "int32", keys)], integers);
  return graph.pointwise("row + keys - rows", "SUB", [after, graph.number("rows", "int32", rows)], integers);
}
