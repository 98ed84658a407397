/** Kernels of a Program: generated kernels, cuBLASLt for matmuls that it supports, and cuDNN for attention. */
import { type AttentionKernel, hasKeyLengths, isAttention } from "../../../commands/attention.ts";
import type { Launch } from "../../../commands/command.ts";
import type { NestMemory } from "../../../kernels/nests/nest.ts";
import type { PhaseAddress as KernelAddress } from "../../../kernels/phase.ts";
import { at, invariant } from "../../../support/invariant.ts";
import {
  scratchBytesOf,
  rowMajorStrides,
  createCudnnGraph,
  exchanged,
  type CudnnGraph,
  type GraphBuilder,
  type GraphTensor,
  type GraphType,
} from "../attention/graph.ts";
import { attentionLayout, type AttentionLayout, type Four, laidOperands } from "../attention/layout.ts";
import { decodeKernels } from "../kernels/decode-kernel.ts";
import { gemmKernel } from "../kernels/gemm-kernel.ts";
import { endsCheck, groupedDescriptorBytes, groupedKernel } from "../kernels/grouped-kernel.ts";
import type { Parameter } from "../kernels/kernel-source.ts";
import { type KernelStep, kernelSteps, workAlignment } from "../kernels/plan/kernel-steps.ts";
import { gemmLayout, workspaceBytes } from "../matmul/gemm-layout.ts";
import { type Address, alignmentOf, type AddressPlace, plus, tensorAlignment } from "./address.ts";
import { copyLaunch, type PlacedBox } from "./copy-ops.ts";
import type { DeviceOp, LaunchOp } from "./device-op.ts";
import { launchOf, type Planning } from "./planning.ts";
import { fail } from "../../../diagnostics/diagnostic.ts";
import { cudnnObstacle, decodeObstacle } from "../../../ir/ops/kinds/attention/cudnn-obstacle.ts";

/** `index` is the command's position in the list. */
export function kernelOps(command: Launch, index: number, planning: Planning): readonly DeviceOp[] {
  const { program, tables, places } = planning;
  const kernel = at(program.kernels, command.kernel);
  if (isAttention(kernel)) return attentionOps(kernel, command, index, planning);
  const operand = launchOperands(command, planning, 0);
  // Launches of one kernel at addresses of equal alignment share their sources.
  const alignments = [command.inputs, command.outputs].map((refs) =>
    refs.map((ref) => alignmentOf(places.addressOf(ref))),
  );
  const { steps, scratchBytes } = tables.stepsOf(JSON.stringify([command.kernel, alignments]), () =>
    kernelSteps(kernel, (memory) => (memory.kind === "scratch" ? tensorAlignment : alignmentOf(operand(memory)))),
  );
  tables.needScratch(command.stream, scratchBytes);
  return steps.flatMap((step) => stepOps(step, operand, command, index, planning, scratchBytes));
}

function stepOps(
  step: KernelStep,
  operand: (memory: NestMemory) => AddressPlace,
  { stream, origins = [], smMargin: margin = 0 }: Launch,
  command: number,
  planning: Planning,
  scratchBytes: number,
): readonly DeviceOp[] {
  const { tables, target } = planning;
  const base = { stream, command };
  if (step.kind === "kernel") {
    const valueOf = (parameter: Parameter): Address | number =>
      parameter.kind === "origin" ? at(origins, parameter.position) : operand(parameter);
    return [launchOf(planning, base, step.source, step.source.parameters.map(valueOf))];
  }
  const { contraction, a, b, bias, addend, scales = [], c } = step;
  const addressOf = ({ memory, offset }: KernelAddress): AddressPlace => plus(operand(memory), offset);
  const operands = [a, b, bias, addend, ...scales, c].filter((operand) => operand !== null);
  const source = () =>
    gemmKernel(
      contraction,
      operands.map(({ memory }) => memory),
      addend !== null,
    );
  const layout = gemmLayout(contraction);
  const addresses = operands.map(addressOf);
  if (layout === null) {
    const free = { ...target, multiprocessors: target.multiprocessors - margin };
    const isAligned = addresses.every((address) => alignmentOf(address) === tensorAlignment);
    const memories = operands.map(({ memory }) => memory);
    const grouped = isAligned ? groupedKernel(contraction, memories, free) : null;
    if (grouped === null) return [launchOf(planning, base, source(), addresses)];
    const offset = Math.ceil(scratchBytes / workAlignment) * workAlignment;
    tables.needScratch(stream, offset + groupedDescriptorBytes(target));
    const check = endsCheck(contraction);
    return [
      ...(check === null ? [] : [launchOf(planning, base, check, [at(addresses, 2)])]),
      launchOf(planning, base, grouped, [...addresses, { space: "scratch", stream, offset }]),
    ];
  }
  const gemm = tables.gemmOf(step, margin, () => {
    const fallback = source();
    const { grid, block } = fallback;
    return { layout, margin, fallback: { kernel: tables.kernelOf(fallback), grid, block } };
  });
  tables.needWorkspace(stream, workspaceBytes);
  return [
    {
      kind: "gemm",
      ...base,
      gemm,
      a: addressOf(a),
      b: addressOf(b),
      bias: bias && addressOf(bias),
      ...(addend === null ? {} : { addend: addressOf(addend) }),
      ...(scales.length === 0 ? {} : { scales: scales.map(addressOf) }),
      c: addressOf(c),
    },
  ];
}

// Kernels of attention as one graph of cuDNN, or as a kernel for few queries, between copies of the operands that it cannot take where they lie.

/** `index` is the command's position in the list. Throws `kernel-opaque` for an attention that cuDNN does not take. */
function attentionOps(
  kernel: AttentionKernel,
  { inputs, outputs, stream }: Launch,
  index: number,
  planning: Planning,
): readonly DeviceOp[] {
  const { places, tables } = planning;
  const base = { stream, command: index };
  const operands = laidOperands(kernel);
  const own = [...inputs, ...outputs].map(places.addressOf);
  const alignments = own.map(alignmentOf);
  const type = attentionType(kernel);
  const layout = attentionLayout(kernel, alignments);
  const inScratch = (offset: number): AddressPlace => ({ space: "scratch", stream, offset });
  const placed = [...layout.inputs, ...layout.outputs];
  const addresses = placed.map(({ copy }, i) => (copy === null ? at(own, i) : inScratch(copy.offset)));
  /** The copies of the inputs to the scratch, or of the outputs from there. */
  const copies = (isInput: boolean): readonly LaunchOp[] =>
    placed.flatMap(({ copy }, i) => {
      if (copy === null || i < kernel.inputs.length !== isInput) return [];
      const memory: PlacedBox = [at(operands, i), at(own, i)];
      const scratch: PlacedBox = [{ ...at(operands, i), strides: copy.strides }, at(addresses, i)];
      return [isInput ? copyLaunch(base, memory, scratch, planning) : copyLaunch(base, scratch, memory, planning)];
    });
  const scratch = inScratch(layout.copyBytes);
  if (hasKeyLengths(kernel)) {
    const { parts, sum, partBytes } = decodeKernels(kernel, layout, type, planning.target);
    tables.needScratch(stream, layout.copyBytes + partBytes);
    const sums = sum === null ? [] : [launchOf(planning, base, sum, [...addresses.slice(-2), scratch])];
    return [...copies(true), launchOf(planning, base, parts, [...addresses, scratch]), ...sums, ...copies(false)];
  }
  const attention = tables.attentionOf(JSON.stringify([kernel, alignments]), () => {
    const graph = attentionGraph(kernel, type, layout);
    return { kernel, graph, scratchBytes: scratchBytesOf(graph) };
  });
  tables.needScratch(stream, layout.copyBytes + at(tables.attentions, attention).scratchBytes);
  return [...copies(true), { kind: "attention", ...base, attention, operands: addresses, scratch }, ...copies(false)];
}

// The addresses of a launch's operands.

/** Scratch begins at `scratch`; there is none if it is omitted. */
export function launchOperands(
  { inputs, outputs, stream }: Launch,
  { places }: Planning,
  scratch = -1,
): (memory: NestMemory) => AddressPlace {
  const [read, written] = [inputs.map(places.addressOf), outputs.map(places.addressOf)];
  return (memory) => {
    if (memory.kind !== "scratch") return at(memory.kind === "input" ? read : written, memory.position);
    invariant(scratch >= 0, "a kernel that is one loop over elements has no scratch", { memory });
    return { space: "scratch", stream, offset: scratch + memory.offset };
  };
}

/** Throws `kernel-opaque` for an attention that neither cuDNN nor the kernel of few queries takes. */
function attentionType(kernel: AttentionKernel): "half" | "bfloat16" {
  const isForward = kernel.kind === "sdpa";
  const { dtype, shape: q } = at(kernel.inputs, isForward ? 0 : 1);
  const [k, v] = [1, 2].map((i) => at(kernel.inputs, i + (isForward ? 0 : 1)).shape);
  const { causal, scale } = kernel;
  const shapes = { dtype, q, k: k ?? [], v: v ?? [] };
  const obstacle = hasKeyLengths(kernel)
    ? decodeObstacle(shapes)
    : cudnnObstacle({ ...shapes, causal, scale, isBackward: !isForward });
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

/**
 * Attention as a graph of operations that cuDNN recognizes and runs as one kernel. Operations, their order, the dtypes
 * and which tensors have memory are those of cudnn-frontend (CompositeSDPANode, CompositeSDPABackwardNode): cuDNN has
 * kernels for these graphs only.
 *
 * In the backward graph, dS k is written to dq at once. The usual form adds parts of it by atomics, in any order.
 */
export function attentionGraph(kernel: AttentionKernel, type: GraphType, layout: AttentionLayout): CudnnGraph {
  const graph = createCudnnGraph();
  const build = kernel.kind === "sdpa" ? buildForward : buildBackward;
  build({ graph, kernel, type, layout });
  return graph.graph();
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
  const output = graph.operand("output", type, 3, at(outputs, 0));
  const statistics = graph.operand("logsumexp", "float", 4, at(outputs, 1));
  const products = graph.matmul("q k^T", q, k);
  const scale = graph.number("scale", "float", kernel.scale);
  const scores = masked(graph, kernel, graph.pointwise("scores", "MUL", [products, scale]));
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
  const dq = graph.operand("dq", type, 6, at(outputs, 0));
  const dk = graph.operand("dk", type, 7, at(outputs, 1));
  const dv = graph.operand("dv", type, 8, at(outputs, 2));
  const rows: Four = [q.dims[0], q.dims[1], q.dims[2], 1];

  const weighted = graph.pointwise("g output", "MUL", [g, output]);
  const totals = graph.reduction("totals", "ADD", weighted, { dims: rows });
  const kept = graph.scratch("kept totals", rows);
  graph.pointwise("kept totals", "MUL", [totals, graph.number("one", "float", 1)], { to: kept });

  const products = graph.matmul("q k^T", q, k);
  const scale = graph.number("scale", "float", kernel.scale);
  const scores = graph.pointwise("scores", "MUL", [products, scale]);
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

/** The scores, and -infinity where a row does not see a key. */
function masked(graph: GraphBuilder, { causal }: AttentionKernel, scores: GraphTensor): GraphTensor {
  if (causal === null) return scores;
  const index = (name: string, axis: number): GraphTensor =>
    graph.pointwise(name, "GEN_INDEX", [scores], { type: "int32", axis });
  const [first, column] = [index("row", 2), index("column", 3)];
  const row = causal === "topLeft" ? first : lastRowSeesAll(graph, first, scores);
  const isSeen = graph.pointwise("is seen", "CMP_GE", [row, column], { type: "bool", compute: "bool" });
  return graph.pointwise("masked", "BINARY_SELECT", [scores, graph.number("-infinity", "float", "-infinity"), isSeen]);
}

function lastRowSeesAll(graph: GraphBuilder, row: GraphTensor, { dims: [, , rows, keys] }: GraphTensor): GraphTensor {
  const integers = { type: "int32", compute: "int32" } as const;
  const after = graph.pointwise("row + keys", "ADD", [row, graph.number("keys", "int32", keys)], integers);
  return graph.pointwise("row + keys - rows", "SUB", [after, graph.number("rows", "int32", rows)], integers);
}
