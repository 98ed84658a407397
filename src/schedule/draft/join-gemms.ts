/**
 * Joins GEMMs of one kernel into fewer, larger ones. A run of n adjacent GEMMs along one result axis becomes one GEMM
 * with n times the extent. GEMMs at equal distances that are not adjacent along any axis become one batched GEMM.
 */
import type { Launch } from "../../commands/command.ts";
import { type Operand, withoutAddend } from "../../commands/kernel.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { DraftNode } from "./draft.ts";
import type { Memory } from "./memory/memory.ts";
import { isGemm, type GemmAxis, gemmAxes, type GemmKernel } from "./gemm-axes.ts";

export interface GemmNode extends DraftNode {
  readonly command: Launch;
}

export interface JoinedGemms {
  /** Two or more, in the given order. */
  readonly parts: readonly GemmNode[];
  /** On the stream of one of them. */
  readonly command: Launch;
}

/** All `gemms` launch one kernel. Those without a neighbour are not in the result. */
export function joinGemms(gemms: readonly GemmNode[], memory: Memory): readonly JoinedGemms[] {
  if (gemms.length < 2) return [];
  const kernel = at(memory.kernels, at(gemms, 0).command.kernel);
  invariant(isGemm(kernel), "joined nodes launch GEMMs", { kind: kernel.kind });
  let best: readonly (readonly GemmNode[])[] = gemms.map((gemm) => [gemm]);
  let joined: readonly JoinedGemms[] = [];
  for (const [form, axis] of formsOf(kernel)) {
    const runs = neighbourRuns(gemms, form, axis);
    if (runs.length >= best.length) continue;
    best = runs;
    joined = runs.flatMap((run) => (run.length < 2 ? [] : [joinRun(gemms, run, form, axis, memory)]));
  }
  return joined;
}

/**
 * The kernel with each of its result axes, then with an added batch axis of one element, for GEMMs that are not
 * adjacent.
 */
function formsOf(kernel: GemmKernel): readonly (readonly [GemmKernel, GemmAxis])[] {
  const batched = ({ dtype, shape, strides }: Operand): Operand => ({
    dtype,
    shape: [1, ...shape],
    strides: [0, ...strides],
  });
  const { inputs: factors } = withoutAddend(kernel)?.product ?? kernel;
  const isShared = (input: number): boolean => kernel.kind === "linear" && input > 0 && input < factors.length;
  const form: GemmKernel = {
    ...kernel,
    inputs: kernel.inputs.map((operand, i) => (isShared(i) ? operand : batched(operand))),
    outputs: kernel.outputs.map(batched),
  };
  const inputs = kernel.inputs.map((_, i) => (isShared(i) ? null : 0));
  return [...gemmAxes(kernel).map((axis) => [kernel, axis] as const), [form, { output: 0, inputs }]];
}

/** The GEMMs in order of their results, divided into runs that are adjacent in every operand. */
function neighbourRuns(
  gemms: readonly GemmNode[],
  kernel: GemmKernel,
  axis: GemmAxis,
): readonly (readonly GemmNode[])[] {
  const sorted = gemms.toSorted((one, other) => {
    const [a, b] = [at(one.command.outputs, 0), at(other.command.outputs, 0)];
    return a.buffer - b.buffer || a.offset - b.offset;
  });
  const runs: GemmNode[][] = [];
  let step = "";
  for (const [i, gemm] of sorted.entries()) {
    const run = runs.at(-1);
    const next = i === 0 ? null : stepBetween(at(sorted, i - 1).command, gemm.command, kernel, axis);
    const joins = run !== undefined && next !== null && (run.length === 1 || next.join(" ") === step);
    if (joins) {
      run.push(gemm);
      step = next.join(" ");
    } else runs.push([gemm]);
  }
  return runs;
}

/** By operand, inputs first: the elements from one GEMM to the next; null if they are not adjacent. */
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
  // The stride of an axis of one element is free, if it keeps the elements of the other axes apart.
  const span = shape.reduce((last, count, other) => last + (count - 1) * at(strides, other), 1);
  return elements === 0 || (Number.isInteger(elements) && elements >= span);
}

function joinRun(
  gemms: readonly GemmNode[],
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
  const own = new Set(run);
  const parts = gemms.filter((gemm) => own.has(gemm));
  return { parts, command: { ...first, kernel: memory.kernelId({ ...kernel, inputs, outputs }) } };
}
