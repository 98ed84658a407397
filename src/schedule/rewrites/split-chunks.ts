/**
 * Splits a peer copy, and the GEMM of the same rank that reads or writes its data, into chunks, so that the number of
 * chunks does not depend on the number of devices. The first chunk computes while the second is in flight.
 *
 *     wait, copy, signal, GEMM     ->     wait, copy 1, copy 2, signal, GEMM 1, GEMM 2
 *
 * The signals stay one pair. The rewrite therefore applies only if a rank copies for itself: a gather by get, a scatter
 * by put.
 */
import type { BufferRef } from "../../commands/buffer.ts";
import type { Launch } from "../../commands/command.ts";
import { at } from "../../support/invariant.ts";
import { type Draft, type DraftNode, freshId, replaceNodes } from "../draft/draft.ts";
import type { DraftMemory } from "../draft/memory/memory.ts";
import { sameBytes, type Touch, touchesMeet } from "../draft/memory/touch.ts";
import type { DraftCopy } from "../draft/edit-ranks.ts";
import { gemmAxes, type GemmAxis, type GemmKernel, isGemm } from "../draft/gemm-axes.ts";
import { createTimeline, type AccessTimeline } from "../draft/memory/timeline.ts";
import { draftRewrite, type Rewrite } from "../rewrite.ts";
import type { Operand } from "../../commands/kernel.ts";
import { commonBox, narrowView } from "../../commands/view.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { elementCount } from "../../numerics/tensor/host-tensor.ts";

/** The value is the number of chunks. It is limited to the number of rows (or columns). */
export const splitChunks: Rewrite<number> = draftRewrite(
  (parts) =>
    (draft, { memory }) =>
      splitInDraft(draft, memory, parts),
);

function splitInDraft(draft: Draft, memory: DraftMemory, parts: number): Draft {
  let next = freshId(draft.nodes);
  const timeline = createTimeline();
  for (const [position, { command }] of draft.nodes.entries()) timeline.add(position, memory.touches(command));
  const replaced = new Map<number, readonly DraftNode[]>();
  for (const [position, node] of draft.nodes.entries()) {
    if (node.command.kind !== "copy" || !memory.touches(node.command).some((touch) => touch.rank !== draft.rank))
      continue;
    const gemm = gemmOf(draft.nodes, position, timeline, memory);
    if (gemm === null || replaced.has(gemm.node.id)) continue;
    const chunks = cutTogether(node.command, gemm, memory, parts);
    if (chunks === null) continue;
    for (const [whole, commands] of [
      [node, chunks.copies],
      [gemm.node, chunks.gemms],
    ] as const) {
      const nodes = commands.map((command, i): DraftNode => ({ ...whole, id: i === 0 ? whole.id : next++, command }));
      replaced.set(whole.id, nodes);
    }
  }
  return replaced.size === 0 ? draft : { ...draft, nodes: replaceNodes(draft.nodes, replaced) };
}

interface CopiedGemm {
  readonly node: DraftNode;
  readonly command: Launch;
  /** The index of the GEMM's operand that is copied, inputs first. */
  readonly operand: number;
}

/**
 * The only GEMM that reads the copy's destination, or the GEMM that writes all of its source. Null if other commands
 * read the destination or there is no such GEMM.
 */
function gemmOf(
  nodes: readonly DraftNode[],
  position: number,
  timeline: AccessTimeline,
  memory: DraftMemory,
): CopiedGemm | null {
  const [source, destination] = memory.touches(at(nodes, position).command);
  if (source === undefined || destination === undefined) return null;
  const readers: DraftNode[] = [];
  for (const other of timeline.after(position, [destination])) {
    const node = at(nodes, other);
    const touches = memory.touches(node.command).filter((touch) => touchesMeet(touch, destination));
    if (touches.some(({ writes }) => !writes)) readers.push(node);
    if (touches.some(({ writes }) => writes)) break;
  }
  if (readers.length === 1) return asCopiedGemm(at(readers, 0), destination, memory);
  const isMaker = ({ command }: DraftNode): boolean =>
    memory.touches(command).some((touch) => touch.writes && touchesMeet(touch, source));
  let maker: DraftNode | undefined;
  for (const other of timeline.before(position, [source])) {
    if (!isMaker(at(nodes, other))) continue;
    maker = at(nodes, other);
    break;
  }
  return maker === undefined || readers.length > 1 ? null : asCopiedGemm(maker, source, memory);
}

function asCopiedGemm(node: DraftNode, copied: Touch, memory: DraftMemory): CopiedGemm | null {
  const { command } = node;
  if (command.kind !== "launch" || !isGemm(at(memory.kernels, command.kernel))) return null;
  const operand = memory.touches(command).findIndex((touch) => sameBytes(touch, copied));
  return operand < 0 || operand > command.inputs.length ? null : { node, command, operand };
}

interface Chunks {
  readonly copies: readonly DraftCopy[];
  readonly gemms: readonly Launch[];
}

/**
 * Splits along the first result axis for which the copy's chunks equal those of the GEMM's operand; null if there is
 * none.
 */
function cutTogether(
  copy: DraftCopy,
  { command, operand }: CopiedGemm,
  memory: DraftMemory,
  parts: number,
): Chunks | null {
  const kernel = at(memory.kernels, command.kernel);
  if (!isGemm(kernel)) return null;
  const side = operand < command.inputs.length ? 1 : 0;
  for (const axis of gemmAxes(kernel)) {
    if ([...axis.inputs, axis.output][operand] === null) continue;
    const extent = at(at(kernel.outputs, 0).shape, axis.output);
    const count = Math.min(parts, extent);
    if (count < 2) continue;
    const bounds = Array.from({ length: count + 1 }, (_, i) => Math.floor((i * extent) / count));
    const gemms = cutGemm(command, kernel, axis, bounds, memory);
    const copies = cutCopy(copy, bounds);
    const agree = copies?.every((part, i) =>
      sameBytes(at(memory.touches(part), side), at(memory.touches(at(gemms, i)), operand)),
    );
    if (copies !== null && agree === true) return { copies, gemms };
  }
  return null;
}

/** Splits a GEMM or a copy along one axis: part i holds the range [bounds[i], bounds[i + 1]). */
function cutGemm(
  gemm: Launch,
  kernel: GemmKernel,
  axis: GemmAxis,
  bounds: readonly number[],
  memory: DraftMemory,
): readonly Launch[] {
  return bounds.slice(1).map((end, i) => {
    const start = at(bounds, i);
    const operand = (whole: Operand, place: number | null): Operand =>
      place === null ? whole : { ...whole, shape: whole.shape.with(place, end - start) };
    const ref = (whole: BufferRef, { dtype, strides }: Operand, place: number | null): BufferRef =>
      place === null ? whole : { ...whole, offset: whole.offset + start * at(strides, place) * dtypes[dtype].bytes };
    const places = axis.inputs;
    return {
      ...gemm,
      kernel: memory.kernelId({
        ...kernel,
        inputs: kernel.inputs.map((whole, j) => operand(whole, at(places, j))),
        outputs: kernel.outputs.map((whole) => operand(whole, axis.output)),
      }),
      inputs: gemm.inputs.map((whole, j) => ref(whole, at(kernel.inputs, j), at(places, j))),
      outputs: gemm.outputs.map((whole, j) => ref(whole, at(kernel.outputs, j), axis.output)),
    };
  });
}

/**
 * The copy split into parts of its elements in row-major order, in the proportions of `bounds`; null if its outermost
 * axis does not divide that way. The caller checks that these are the intended parts.
 */
function cutCopy(copy: DraftCopy, bounds: readonly number[]): readonly DraftCopy[] | null {
  const box = commonBox([copy.source, copy.destination]);
  const outer = box?.shape[0];
  if (box === null || outer === undefined || elementCount(box.shape) === 0) return null;
  const unit = outer / at(bounds, bounds.length - 1);
  if (!bounds.every((bound) => Number.isInteger(bound * unit))) return null;
  const source = { ...copy.source, shape: box.shape, strides: at(box.strides, 0) };
  const destination = { ...copy.destination, shape: box.shape, strides: at(box.strides, 1) };
  return bounds.slice(1).map((end, i) => {
    const start = at(bounds, i) * unit;
    const count = end * unit - start;
    return {
      ...copy,
      source: narrowView(source, 0, start, count),
      destination: narrowView(destination, 0, start, count),
    };
  });
}
