/** Sums over one axis: the partial results that a reduction adds. */
import type { BufferRef } from "../../commands/buffer.ts";
import type { CommandStreamId, Launch } from "../../commands/command.ts";
import type { Operand, ReductionKernel } from "../../commands/kernel.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { makeId } from "../../support/ids.ts";
import { at } from "../../support/invariant.ts";
import type { DraftNode } from "./draft.ts";
import type { Memory } from "./memory/memory.ts";
import type { Touch } from "./memory/touch.ts";

/** One of the added tensors, and its memory. */
export interface Part {
  readonly ref: BufferRef;
  readonly operand: Operand;
}

/** A reduction over one axis. */
export interface Sum {
  readonly node: DraftNode;
  readonly command: Launch;
  readonly kernel: ReductionKernel;
}

export function asSum(node: DraftNode, { kernels }: Memory): Sum | null {
  const { command } = node;
  if (command.kind !== "launch") return null;
  const kernel = at(kernels, command.kernel);
  return kernel.kind === "reduction" && kernel.axes.length === 1 ? { node, command, kernel } : null;
}

/** The access of a command that reads the part. */
export function touchOf({ ref, operand }: Part, memory: Memory): Touch {
  const view = { ...ref, ...operand };
  const stream = makeId<CommandStreamId>(0);
  return at(memory.touches({ kind: "copy", stream, source: view, destination: view }), 0);
}

/** The slices of the reduced axis. */
export function slicesOf({ command, kernel }: Sum): readonly Part[] {
  const axis = at(kernel.axes, 0);
  const { dtype, shape, strides } = at(kernel.inputs, 0);
  const ref = at(command.inputs, 0);
  return Array.from({ length: at(shape, axis) }, (_, i): Part => ({
    ref: { buffer: ref.buffer, offset: ref.offset + i * at(strides, axis) * dtypes[dtype].bytes },
    operand: { dtype, shape: shape.toSpliced(axis, 1), strides: strides.toSpliced(axis, 1) },
  }));
}
