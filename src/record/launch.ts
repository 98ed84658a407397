/**
 * Launches and copies over bound views. If an output may share bytes with an input that the kernel still reads, the
 * result goes through a temporary.
 */
import type { CommandStreamId, KernelId } from "../commands/command.ts";
import type { InPlace, Kernel, Operand } from "../commands/kernel.ts";
import { contiguousStrides, isEmpty, operandOf, refOf, sameNumbers, type View } from "../commands/view.ts";
import type { Statement } from "../host/nodes.ts";
import { withoutReductions } from "../ir/domain.ts";
import { partialAxes } from "../ir/ops/axis-map.ts";
import type { Op } from "../ir/ops/op.ts";
import { at } from "../support/invariant.ts";
import { actualOutput } from "./actual.ts";
import { noteOperands } from "./alike/alike.ts";
import type { Actual } from "./actual-sizes.ts";
import { requireDeclaredShape, requireShape } from "./checks.ts";
import { addTemporary, bind } from "./memory.ts";
import type { Recorder } from "./recorder.ts";
import { outputView, tensorOf } from "./tensors.ts";
import { addKernel, emit } from "./tape.ts";
import { mayOverlap, permuteView, sameElements } from "./views.ts";

/** Makes the kernel for these operands. Called only if the statement's last kernel does not fit. */
export type MakeKernel = (inputs: readonly Operand[], outputs: readonly Operand[]) => Kernel;

export interface LaunchRequest {
  readonly statement: Statement;
  readonly inputs: readonly View[];
  readonly outputs: readonly View[];
  /** Where the launch begins in whole tensors, on each rank that is recorded; none by default. */
  readonly originsOn?: readonly (readonly number[])[];
  /** Whether an output may be the same view as an input; or the pairs of them that may. None by default. */
  readonly inPlace?: boolean | readonly InPlace[];
  /** Whether the statement and the operands alone determine the kernel, as by default. */
  readonly fixed?: boolean;
  readonly make: MakeKernel;
}

/**
 * Launches one kernel; none if all outputs are empty. If an output overlaps an input other than in place, the kernel
 * writes a temporary, which is then copied.
 */
export function launch(recorder: Recorder, request: LaunchRequest): void {
  const { inputs, outputs, originsOn, inPlace = false } = request;
  if (outputs.every(isEmpty)) return;
  const mayBeOne = (input: number, output: number): boolean =>
    typeof inPlace === "boolean" ? inPlace : inPlace.some((pair) => pair.input === input && pair.output === output);
  const staged = outputs.map((output, j) =>
    inputs.some((input, i) => mayOverlap(input, output) && !(mayBeOne(i, j) && sameElements(input, output))),
  );
  if (staged.includes(true)) return launchStaged(recorder, request, staged);
  const { tape, streams, alike } = recorder;
  const kernel = kernelFor(recorder, request);
  if (alike !== null) noteOperands(alike, tape.commands.length, { inputs, outputs });
  const [origins, ...others] = originsOn ?? [];
  if (origins !== undefined && !others.every((other) => sameNumbers(other, origins))) {
    alike?.varying.set(tape.commands.length, (command, k) => ({ ...command, origins: originsOn?.[k] ?? origins }));
  }
  emit(tape, {
    kind: "launch",
    stream: streams.current,
    kernel,
    inputs: inputs.map(refOf),
    outputs: outputs.map(refOf),
    ...(origins === undefined ? {} : { origins }),
  });
}

function launchStaged(recorder: Recorder, request: LaunchRequest, staged: readonly boolean[]): void {
  const outputs = request.outputs.map((output, i) =>
    staged[i] === true ? contiguousTemporary(recorder, output) : output,
  );
  launch(recorder, { ...request, outputs });
  request.outputs.forEach((output, i) => {
    if (staged[i] !== true) return;
    const temporary = at(outputs, i);
    emitCopy(recorder, temporary, output);
    release(recorder, temporary);
  });
}

/** A new temporary of the shape of `view`, named after its buffer. */
export function contiguousTemporary(recorder: Recorder, view: View): View {
  const { memory, streams } = recorder;
  const { name } = at(memory.buffers, view.buffer).buffer;
  const layout = { shape: view.shape, strides: contiguousStrides(view.shape) };
  return addTemporary(memory, { name, dtype: view.dtype, symmetric: false, layout }, streams.current);
}

/** Frees a temporary that no tensor is bound to. */
export function release({ tape, streams }: Recorder, view: View): void {
  emit(tape, { kind: "free", stream: streams.current, buffer: view.buffer });
}

function kernelFor({ tape, kernels }: Recorder, request: LaunchRequest): KernelId {
  const { statement, inputs, outputs, fixed = true, make } = request;
  const last = fixed ? kernels.last.get(statement) : undefined;
  if (last !== undefined && sameOperands(last.inputs, inputs) && sameOperands(last.outputs, outputs)) {
    return last.kernel;
  }
  const operands = { inputs: inputs.map(operandOf), outputs: outputs.map(operandOf) };
  const made = make(operands.inputs, operands.outputs);
  const text = JSON.stringify(made);
  const kernel = kernels.byText.get(text) ?? addKernel(tape, made);
  kernels.byText.set(text, kernel);
  kernels.last.set(statement, { ...operands, kernel });
  return kernel;
}

function sameOperands(operands: readonly Operand[], views: readonly View[]): boolean {
  return operands.every(({ shape, strides }, i) => {
    const view = at(views, i);
    return sameNumbers(shape, view.shape) && sameNumbers(strides, view.strides);
  });
}

/** Copies between views of equal shape, unless they are the same. Throws `size-mismatch`. */
export function copyView(recorder: Recorder, source: View, destination: View): void {
  requireShape(recorder, "the output", destination.shape, source.shape);
  if (sameElements(source, destination)) return;
  if (!mayOverlap(source, destination)) return emitCopy(recorder, source, destination);
  const temporary = contiguousTemporary(recorder, source);
  emitCopy(recorder, source, temporary);
  emitCopy(recorder, temporary, destination);
  release(recorder, temporary);
}

/** A copy between views of equal shape that do not overlap. None if they are empty. */
export function emitCopy(
  { tape, streams, alike }: Recorder,
  source: View,
  destination: View,
  stream: CommandStreamId = streams.current,
): void {
  if (isEmpty(source)) return;
  if (alike !== null) noteOperands(alike, tape.commands.length, { inputs: [source], outputs: [destination] });
  emit(tape, { kind: "copy", stream, source, destination });
}

/**
 * Binds the op's output to a view of another tensor's memory and makes it one of the memory's owners. `actual` has the
 * output's sizes if they are not the declared ones. Throws `size-mismatch`.
 */
export function alias(recorder: Recorder, op: Op, view: View, actual: Actual | null): void {
  const { memory, streams, actuals } = recorder;
  const { output } = op;
  if (actual === null) requireDeclaredShape(recorder, output, view.shape);
  else requireShape(recorder, `T${output}`, actual.local, view.shape);
  bind(memory, output, { view, owns: true, aliasedBy: op }, streams.current);
  if (actual === null) actuals.delete(output);
  else actuals.set(output, actual);
}

/**
 * The memory that `op` writes. A reduction that stops at each device's partial result has an axis that numbers the
 * devices. On each device that axis has one element, so it is dropped for kernels.
 */
export function ordinaryOutput(recorder: Recorder, op: Op): View {
  const output = outputView(recorder, op.output, actualOutput(recorder, op));
  const partial = partialAxes(op, recorder.program.tensors);
  if (partial.length === 0) return output;
  const axes = withoutReductions(tensorOf(recorder, op.output).domain.logical);
  return permuteView(
    output,
    axes.flatMap((axis, position) => (partial.includes(axis) ? [] : [position])),
  );
}
