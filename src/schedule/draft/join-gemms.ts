/**
 * Joins GEMMs of one kernel into fewer, larger ones: each run of neighbours along one result axis becomes one GEMM of
 * that many times the extent. GEMMs at equal distances that are not neighbours along any axis become one batched GEMM.
 */
import type { Launch } from "../../commands/command.ts";
import type { Operand } from "../../commands/kernel.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { DraftNode } from "./draft.ts";
import type { Memory } from "./memory.ts";
import { isGemm, type GemmAxis, gemmAxes, type GemmKernel } from "./gemm-axes.ts";

export interface GemmNode extends DraftNode {
  readonly command: Launch;
}

export interface JoinedGemms {
  /** Two or more, in the given order. */
  readonly members: readonly GemmNode[];
  /** On the stream of one of them. */
  readonly command: Launch;
}

/** All `products` launch one kernel. Those without a neighbour are not in the result. */
export function joinGemms(products: readonly GemmNode[], memory: Memory): readonly JoinedGemms[] {
  if (products.length < 2) return [];
  const kernel = at(memory.kernels, at(products, 0).command.kernel);
  invariant(isGemm(kernel), "products launch product kernels", { kind: kernel.kind });
  let best: readonly (readonly GemmNode[])[] = products.map((product) => [product]);
  let joined: readonly JoinedGemms[] = [];
  for (const [form, axis] of formsOf(kernel)) {
    const runs = neighbourRuns(products, form, axis);
    if (runs.length >= best.length) continue;
    best = runs;
    joined = runs.flatMap((run) => (run.length < 2 ? [] : [joinRun(products, run, form, axis, memory)]));
  }
  return joined;
}

/** The kernel with each axis that it has, then with a batch axis of one element, which only separate GEMMs need. */
function formsOf(kernel: GemmKernel): readonly (readonly [GemmKernel, GemmAxis])[] {
  const batched = ({ dtype, shape, strides }: Operand): Operand => ({
    dtype,
    shape: [1, ...shape],
    strides: [0, ...strides],
  });
  const form: GemmKernel = {
    ...kernel,
    inputs: kernel.inputs.map((operand, i) => (kernel.kind === "linear" && i > 0 ? operand : batched(operand))),
    outputs: kernel.outputs.map(batched),
  };
  const inputs = kernel.inputs.map((_, i) => (kernel.kind === "linear" && i > 0 ? null : 0));
  return [...gemmAxes(kernel).map((axis) => [kernel, axis] as const), [form, { output: 0, inputs }]];
}

/** The GEMMs in order of their results, cut where neighbours are not adjacent in every operand. */
function neighbourRuns(
  products: readonly GemmNode[],
  kernel: GemmKernel,
  axis: GemmAxis,
): readonly (readonly GemmNode[])[] {
  const sorted = products.toSorted((one, other) => {
    const [a, b] = [at(one.command.outputs, 0), at(other.command.outputs, 0)];
    return a.buffer - b.buffer || a.offset - b.offset;
  });
  const runs: GemmNode[][] = [];
  let step = "";
  for (const [i, product] of sorted.entries()) {
    const run = runs.at(-1);
    const next = i === 0 ? null : stepBetween(at(sorted, i - 1).command, product.command, kernel, axis);
    const joins = run !== undefined && next !== null && (run.length === 1 || next.join(" ") === step);
    if (joins) {
      run.push(product);
      step = next.join(" ");
    } else runs.push([product]);
  }
  return runs;
}

/** By operand, inputs first: the elements from one GEMM to the next; null if they are not neighbours. */
function stepBetween(a: Launch, b: Launch, kernel: GemmKernel, axis: GemmAxis): readonly number[] | null {
  const operands = [...kernel.inputs, ...kernel.outputs];
  const axes = [...axis.inputs, axis.output];
  const [from, to] = [
    [...a.inputs, ...a.outputs],
    [...b.inputs, ...b.outputs],
  ];
  const steps = operands.map((operand, i) => {
    if (at(to, i).buffer !== at(from, i).buffer) return null;
    const elements = (at(to, i).offset - at(from, i).offset) / dtypes[operand.dtype].bytes;
    return isStep(operand, at(axes, i), elements) ? elements : null;
  });
  const output = at(steps, steps.length - 1);
  return output === 0 || steps.includes(null) ? null : steps.flatMap((step) => step ?? []);
}

function isStep({ shape, strides }: Operand, axis: number | null, elements: number): boolean {
  if (axis === null) return elements === 0;
  const extent = at(shape, axis);
  if (extent > 1) return elements === extent * at(strides, axis);
  // An axis of one element may have any stride that keeps the others' elements apart.
  const span = shape.reduce((last, count, other) => last + (count - 1) * at(strides, other), 1);
  return elements === 0 || (Number.isInteger(elements) && elements >= span);
}

function joinRun(
  products: readonly GemmNode[],
  run: readonly GemmNode[],
  kernel: GemmKernel,
  axis: GemmAxis,
  memory: Memory,
): JoinedGemms {
  const first = at(run, 0).command;
  const step = stepBetween(first, at(run, 1).command, kernel, axis);
  invariant(step !== null, "runs are of neighbours", { kernel: first.kernel });
  const grown = (operand: Operand, place: number | null, elements: number): Operand =>
    place === null
      ? operand
      : {
          dtype: operand.dtype,
          shape: operand.shape.with(place, at(operand.shape, place) * run.length),
          strides: at(operand.shape, place) === 1 ? operand.strides.with(place, elements) : operand.strides,
        };
  const inputs = kernel.inputs.map((operand, i) => grown(operand, at(axis.inputs, i), at(step, i)));
  const outputs = kernel.outputs.map((operand) => grown(operand, axis.output, at(step, step.length - 1)));
  const members = products.filter((product) => run.includes(product));
  return { members, command: { ...first, kernel: memory.kernelId({ ...kernel, inputs, outputs }) } };
}
