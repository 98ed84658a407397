/**
 * Adds two partial results in the GEMM that computes one of them: C and beta = 1 of a BLAS. The GEMM moves to where the
 * sum was, and nothing follows the last arrival but that GEMM. Two devices have two partial results.
 *
 *     GEMM -> slot 0; wait, copy -> slot 1; slot 0 + slot 1 -> result    ->    wait, copy -> slot 1; GEMM + slot 1 -> result
 *
 * A GPU then rounds once instead of twice, so the last bits may change. They are the same in every run.
 */
import type { BufferRef } from "../../commands/buffer.ts";
import type { CommandStreamId, Launch } from "../../commands/command.ts";
import type { Operand, ReductionKernel } from "../../commands/kernel.ts";
import { sameNumbers } from "../../commands/view.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { makeId, at } from "../../support/invariant.ts";
import type { Draft, DraftNode } from "../draft/draft.ts";
import type { EditContext } from "../draft/edit-ranks.ts";
import { type GemmKernel, isGemm } from "../draft/gemm-axes.ts";
import type { DraftMemory } from "../draft/memory/memory.ts";
import { createTimeline, type AccessTimeline } from "../draft/memory/timeline.ts";
import { covers, sameBytes, type Touch, touchesMeet } from "../draft/memory/touch.ts";
import { idsRelied } from "../draft/order/pasts.ts";
import { draftRewrite, type Rewrite } from "../rewrite.ts";

export const gemmSums: Rewrite<true> = draftRewrite(() => editDraft);

function editDraft(draft: Draft, context: EditContext): Draft {
  const { nodes } = draft;
  const { memory } = context;
  const timeline = createTimeline();
  for (const [position, { command }] of nodes.entries()) timeline.add(position, memory.touches(command));
  const relied = idsRelied(nodes);
  const edited: (DraftNode | null)[] = [...nodes];
  for (const [position, node] of nodes.entries()) {
    const sum = asSum(node, memory);
    if (sum?.kernel.op !== "sum") continue;
    // Afterwards the partial result is nowhere in memory.
    if (at(memory.buffers, at(sum.command.inputs, 0).buffer).role !== "temporary") continue;
    const [first, second, third] = slicesOf(sum);
    if (first === undefined || second === undefined || third !== undefined) continue;
    for (const [own, other] of [
      [first, second],
      [second, first],
    ] as const) {
      const place = { own: touchOf(own, memory), position };
      const gemm = gemmOf(nodes, place, { timeline, memory });
      if (gemm === null || relied.has(at(nodes, gemm).id) || context.foreign.meeting(place.own).length > 0) continue;
      const command = adding(at(nodes, gemm), sum, { own, other }, memory);
      if (command === null) continue;
      const { sync, pasts, sources } = at(nodes, gemm);
      edited[gemm] = null;
      edited[position] = {
        ...node,
        command,
        sync: [...new Set([...sync, ...node.sync])],
        pasts: [...new Set([...pasts, ...node.pasts])],
        sources: [...sources, ...node.sources],
      };
      break;
    }
  }
  const left = edited.filter((node) => node !== null);
  return left.length === nodes.length ? draft : { ...draft, nodes: left };
}

/**
 * The position of the GEMM that writes all of `own`, and could as well run at `position`: only the sum there reads its
 * result, and its operands are the same there. Null if there is none.
 */
function gemmOf(
  nodes: readonly DraftNode[],
  { own, position }: { readonly own: Touch; readonly position: number },
  { timeline, memory }: { readonly timeline: AccessTimeline; readonly memory: DraftMemory },
): number | null {
  const touchesAt = (other: number): readonly Touch[] => memory.touches(at(nodes, other).command);
  let gemm = -1;
  for (const other of timeline.before(position, [own])) {
    const touches = touchesAt(other).filter((touch) => touchesMeet(touch, own));
    if (touches.length === 0) continue;
    if (!touches.some((touch) => touch.writes && sameBytes(touch, own))) return null;
    gemm = other;
    break;
  }
  const command = nodes[gemm]?.command;
  if (command?.kind !== "launch" || !isPlain(memory, command)) return null;
  for (const other of timeline.after(gemm, [own])) {
    const touches = touchesAt(other).filter((touch) => touchesMeet(touch, own));
    if (other !== position && touches.some(({ writes }) => !writes)) return null;
    if (touches.some((touch) => touch.writes && covers(touch, own))) break;
  }
  const operands = touchesAt(gemm).filter(({ writes }) => !writes);
  for (const other of timeline.after(gemm, operands)) {
    if (other > position) break;
    if (touchesAt(other).some((touch) => touch.writes && operands.some((operand) => touchesMeet(touch, operand))))
      return null;
  }
  return gemm;
}

function isPlain({ kernels }: DraftMemory, { kernel: id }: Launch): boolean {
  const kernel = at(kernels, id);
  return isGemm(kernel) && kernel.accumulate !== true && kernel.addend !== true;
}

/**
 * The launch of the GEMM that adds `other` and writes the sum's result. Null if shapes or strides differ, also if the sum
 * reads the GEMM's own result otherwise than the GEMM writes it.
 */
function adding(
  { command }: DraftNode,
  sum: Sum,
  { own, other }: { readonly own: Part; readonly other: Part },
  memory: DraftMemory,
): Launch | null {
  if (command.kind !== "launch") return null;
  const gemm = at(memory.kernels, command.kernel);
  const output = at(sum.kernel.outputs, 0);
  if (!isGemm(gemm)) return null;
  const product = asOutputOf(gemm, own.operand);
  const [addend, result] = [asOutputOf(gemm, other.operand), asOutputOf(gemm, output)];
  if (product === null || addend === null || result === null) return null;
  const written = asOutputOf(gemm, at(gemm.outputs, 0));
  if (!sameNumbers(product.strides, written?.strides ?? []) || !sameNumbers(addend.strides, result.strides))
    return null;
  if (touchesMeet(touchOf(own, memory), touchOf(other, memory))) return null;
  return {
    ...command,
    stream: sum.command.stream,
    kernel: memory.kernelId({ ...gemm, addend: true, inputs: [...gemm.inputs, addend], outputs: [result] }),
    inputs: [...command.inputs, other.ref],
    outputs: sum.command.outputs,
  };
}

/** The operand with the axes of the GEMM's output; null if they differ in more than axes of one element. */
function asOutputOf(gemm: GemmKernel, { dtype, shape, strides }: Operand): Operand | null {
  const output = at(gemm.outputs, 0);
  const longStrides = strides.filter((_, axis) => at(shape, axis) !== 1);
  const isLong = (extent: number): boolean => extent !== 1;
  if (output.dtype !== dtype || !sameNumbers(output.shape.filter(isLong), shape.filter(isLong))) return null;
  let next = 0;
  return {
    dtype,
    shape: output.shape,
    strides: output.shape.map((extent) => (extent === 1 ? 0 : at(longStrides, next++))),
  };
}

// Sums over one axis: the partial results that a reduction adds.

/** One of the added tensors, and its memory. */
interface Part {
  readonly ref: BufferRef;
  readonly operand: Operand;
}

/** A reduction over one axis. */
interface Sum {
  readonly node: DraftNode;
  readonly command: Launch;
  readonly kernel: ReductionKernel;
}

function asSum(node: DraftNode, { kernels }: DraftMemory): Sum | null {
  const { command } = node;
  if (command.kind !== "launch") return null;
  const kernel = at(kernels, command.kernel);
  return kernel.kind === "reduction" && kernel.axes.length === 1 ? { node, command, kernel } : null;
}

/** The access of a command that reads the part. */
function touchOf({ ref, operand }: Part, memory: DraftMemory): Touch {
  const view = { ...ref, ...operand };
  const stream = makeId<CommandStreamId>(0);
  return at(memory.touches({ kind: "copy", stream, source: view, destination: view }), 0);
}

/** The slices of the reduced axis. */
function slicesOf({ command, kernel }: Sum): readonly Part[] {
  const axis = at(kernel.axes, 0);
  const { dtype, shape, strides } = at(kernel.inputs, 0);
  const ref = at(command.inputs, 0);
  return Array.from({ length: at(shape, axis) }, (_, i): Part => ({
    ref: { buffer: ref.buffer, offset: ref.offset + i * at(strides, axis) * dtypes[dtype].bytes },
    operand: { dtype, shape: shape.toSpliced(axis, 1), strides: strides.toSpliced(axis, 1) },
  }));
}
