/** The order in which the parts of a sum arrive: slots that fill at different times, of which a reduction adds all. */
import type { BufferRef } from "../../commands/buffer.ts";
import type { CommandStreamId, Launch } from "../../commands/command.ts";
import type { Operand, ReductionKernel } from "../../commands/kernel.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { makeId } from "../../support/ids.ts";
import { at } from "../../support/invariant.ts";
import type { DraftNode } from "./draft.ts";
import { isGemmLaunch } from "./gemm-axes.ts";
import type { Memory } from "./memory/memory.ts";
import { createTimeline } from "./memory/timeline.ts";
import { conflict, type Touch } from "./memory/touch.ts";

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

export interface Arrivals {
  /** The slices of the axis of the sum at a position; none if all are available at the same time. */
  readonly inOrder: (sum: Sum, position: number) => readonly Part[];
}

export function createArrivals(nodes: readonly DraftNode[], rank: number, memory: Memory): Arrivals {
  const timeline = createTimeline();
  const waits = new Map<number, number>();
  /** By position: the last GEMM before it, or -1. */
  const lastGemms: number[] = [];
  let lastGemm = -1;
  for (const [position, { id, command }] of nodes.entries()) {
    lastGemms.push(lastGemm);
    if (isGemmLaunch(command, memory)) lastGemm = position;
    if (command.kind === "waitSignal") waits.set(id, position);
    else if (command.kind !== "alloc") timeline.add(position, memory.touches(command));
  }
  /** The position of the last node that the slice waits for; -1 if there is none. */
  const lastBefore = (slice: Part, position: number): number => {
    const part = touchOf(slice, memory);
    let last = -1;
    for (const id of at(nodes, position).sync) {
      const wait = waits.get(id) ?? -1;
      const done = nodes[wait]?.guarantee?.done;
      if (wait < position && wait > last && done !== undefined && conflict(done, [part])) last = wait;
    }
    for (const other of timeline.before(position, [part])) {
      if (other <= last) break;
      if (conflict(memory.touches(at(nodes, other).command), [part])) return other;
    }
    return last;
  };
  /**
   * A sort key for when the slice is complete: own slices by list position, then peers' slices by the position of the
   * wait or copy, and last an own slice that is the result of the last GEMM.
   */
  const arrivalOf = (part: Part, position: number): number => {
    const before = lastBefore(part, position);
    if (before === -1) return -1;
    const { command } = at(nodes, before);
    const isSent = command.kind === "waitSignal" || memory.touches(command).some((touch) => touch.rank !== rank);
    if (isSent) return position + before;
    const gemm = at(lastGemms, position);
    return before >= gemm && gemm >= 0 ? 2 * position : before;
  };
  return {
    inOrder: (sum, position) => {
      const parts = slicesOf(sum);
      const arrivals = parts.map((part) => arrivalOf(part, position));
      if (new Set(arrivals).size < 2) return [];
      const order = parts.map((_, i) => i).sort((a, b) => at(arrivals, a) - at(arrivals, b) || a - b);
      return order.map((i) => at(parts, i));
    },
  };
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
