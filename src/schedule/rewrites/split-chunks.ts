/**
 * Cuts a copy over a link, and the GEMM of the same rank that reads or makes its data, into parts, so that the number
 * of chunks does not depend on the number of devices. The first part computes while the second is in flight.
 *
 *     wait, copy, signal, GEMM     ->     wait, copy 1, copy 2, signal, GEMM 1, GEMM 2
 *
 * The signals stay one pair. It therefore applies where a rank copies for itself: a gather by get, a scatter by put.
 */
import type { Launch } from "../../commands/command.ts";
import { at } from "../../support/invariant.ts";
import { type Draft, type DraftNode, freshId, replaceNodes } from "../draft/draft.ts";
import { editRanks } from "../draft/edit-ranks.ts";
import { type Memory, sameBytes, type Touch, touchesMeet } from "../draft/memory.ts";
import type { Copy } from "../draft/move-operands.ts";
import { gemmAxes, type GemmAxis, type GemmKernel, isGemm } from "../draft/gemm-axes.ts";
import type { Rewrite } from "../rewrite.ts";
import type { BufferRef } from "../../commands/buffer.ts";
import type { Operand } from "../../commands/kernel.ts";
import { commonBox, elementCount, narrowView } from "../../commands/view.ts";
import { dtypes } from "../../numerics/dtype.ts";

/** The number of parts, or the number of rows (or columns) if that is smaller. */
export const splitChunks: Rewrite<number> = {
  name: "split-chunks",
  run: (program, parts) => editRanks(program, (draft, { memory }) => splitInDraft(draft, memory, parts)),
};

function splitInDraft(draft: Draft, memory: Memory, parts: number): Draft {
  let next = freshId(draft.nodes);
  const replaced = new Map<number, readonly DraftNode[]>();
  for (const [position, node] of draft.nodes.entries()) {
    if (node.command.kind !== "copy" || !memory.touches(node.command).some((touch) => touch.rank !== draft.rank))
      continue;
    const partner = partnerOf(draft.nodes, position, memory);
    if (partner === null || replaced.has(partner.node.id)) continue;
    const pieces = cutTogether(node.command, partner, memory, parts);
    if (pieces === null) continue;
    for (const [whole, commands] of [
      [node, pieces.copies],
      [partner.node, pieces.products],
    ] as const) {
      const nodes = commands.map((command, i): DraftNode => ({ ...whole, id: i === 0 ? whole.id : next++, command }));
      replaced.set(whole.id, nodes);
    }
  }
  return replaced.size === 0 ? draft : { ...draft, nodes: replaceNodes(draft.nodes, replaced) };
}

interface Partner {
  readonly node: DraftNode;
  readonly command: Launch;
  /** The operand of the GEMM that is copied, counted over all operands, inputs first. */
  readonly operand: number;
}

/**
 * The one GEMM that reads all that the copy writes, or that alone makes what it reads; null if there is none, or others
 * do so too.
 */
function partnerOf(nodes: readonly DraftNode[], position: number, memory: Memory): Partner | null {
  const [source, destination] = memory.touches(at(nodes, position).command);
  if (source === undefined || destination === undefined) return null;
  const readers: DraftNode[] = [];
  for (const node of nodes.slice(position + 1)) {
    const touches = memory.touches(node.command).filter((touch) => touchesMeet(touch, destination));
    if (touches.some(({ writes }) => !writes)) readers.push(node);
    if (touches.some(({ writes }) => writes)) break;
  }
  const maker = nodes.slice(0, position).findLast(({ command }) => {
    return memory.touches(command).some((touch) => touch.writes && touchesMeet(touch, source));
  });
  if (readers.length === 1) return asPartner(at(readers, 0), destination, memory);
  return maker === undefined || readers.length > 1 ? null : asPartner(maker, source, memory);
}

function asPartner(node: DraftNode, copied: Touch, memory: Memory): Partner | null {
  const { command } = node;
  if (command.kind !== "launch" || !isGemm(at(memory.kernels, command.kernel))) return null;
  const operand = memory.touches(command).findIndex((touch) => sameBytes(touch, copied));
  return operand < 0 || operand > command.inputs.length ? null : { node, command, operand };
}

interface Pieces {
  readonly copies: readonly Copy[];
  readonly products: readonly Launch[];
}

/**
 * Along the first result axis for which the parts of the copy are those of the GEMM's operand; null if there is none.
 */
function cutTogether(copy: Copy, { command, operand }: Partner, memory: Memory, parts: number): Pieces | null {
  const kernel = at(memory.kernels, command.kernel);
  if (!isGemm(kernel)) return null;
  const side = operand < command.inputs.length ? 1 : 0;
  for (const axis of gemmAxes(kernel)) {
    if ([...axis.inputs, axis.output][operand] === null) continue;
    const extent = at(at(kernel.outputs, 0).shape, axis.output);
    const count = Math.min(parts, extent);
    if (count < 2) continue;
    const bounds = Array.from({ length: count + 1 }, (_, i) => Math.floor((i * extent) / count));
    const products = cutGemm(command, kernel, axis, bounds, memory);
    const copies = cutCopy(copy, bounds);
    const agree = copies?.every((part, i) =>
      sameBytes(at(memory.touches(part), side), at(memory.touches(at(products, i)), operand)),
    );
    if (copies !== null && agree === true) return { copies, products };
  }
  return null;
}

/** Cuts a GEMM or a copy along one axis: part i holds [bounds[i], bounds[i + 1]) of it. */
function cutGemm(
  product: Launch,
  kernel: GemmKernel,
  axis: GemmAxis,
  bounds: readonly number[],
  memory: Memory,
): readonly Launch[] {
  return bounds.slice(1).map((end, i) => {
    const start = at(bounds, i);
    const operand = (whole: Operand, place: number | null): Operand =>
      place === null ? whole : { ...whole, shape: whole.shape.with(place, end - start) };
    const ref = (whole: BufferRef, { dtype, strides }: Operand, place: number | null): BufferRef =>
      place === null ? whole : { ...whole, offset: whole.offset + start * at(strides, place) * dtypes[dtype].bytes };
    const places = axis.inputs;
    return {
      ...product,
      kernel: memory.kernelId({
        ...kernel,
        inputs: kernel.inputs.map((whole, j) => operand(whole, at(places, j))),
        outputs: kernel.outputs.map((whole) => operand(whole, axis.output)),
      }),
      inputs: product.inputs.map((whole, j) => ref(whole, at(kernel.inputs, j), at(places, j))),
      outputs: product.outputs.map((whole, j) => ref(whole, at(kernel.outputs, j), axis.output)),
    };
  });
}

/**
 * The copy cut into parts of its elements in row-major order, in the proportion of `bounds`; null if its outermost axis
 * does not divide that way. The caller checks that these are the intended parts.
 */
function cutCopy(copy: Copy, bounds: readonly number[]): readonly Copy[] | null {
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
