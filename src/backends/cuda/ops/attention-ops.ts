/** Kernels of attention as one graph of cuDNN, between copies of the operands that it cannot take where they lie. */
import type { AttentionKernel } from "../../../commands/attention.ts";
import type { Launch } from "../../../commands/command.ts";
import { at } from "../../../support/invariant.ts";
import { attentionGraph, attentionType } from "../attention/attention-graph.ts";
import { scratchBytesOf } from "../attention/graph.ts";
import { attentionLayout } from "../attention/layout.ts";
import { alignmentOf, type Place } from "./address.ts";
import { copyLaunch, type PlacedBox } from "./copy-ops.ts";
import type { DeviceOp, LaunchOp } from "./device-op.ts";
import type { Planning } from "./planning.ts";

/** `index` is the command's position in the list. Throws `kernel-opaque` for an attention that cuDNN does not take. */
export function attentionOps(
  kernel: AttentionKernel,
  { inputs, outputs, stream }: Launch,
  index: number,
  planning: Planning,
): readonly DeviceOp[] {
  const { places, tables } = planning;
  const base = { stream, command: index };
  const operands = [...kernel.inputs, ...kernel.outputs];
  const own = [...inputs, ...outputs].map(places.addressOf);
  const alignments = own.map(alignmentOf);
  const type = attentionType(kernel);
  const layout = attentionLayout(kernel, alignments);
  const attention = tables.attentionOf(JSON.stringify([kernel, alignments]), () => {
    const graph = attentionGraph(kernel, type, layout);
    return { kernel, graph, scratchBytes: scratchBytesOf(graph) };
  });
  const inScratch = (offset: number): Place => ({ space: "scratch", stream, offset });
  tables.needScratch(stream, layout.copyBytes + at(tables.attentions, attention).scratchBytes);
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
  return [...copies(true), { kind: "attention", ...base, attention, operands: addresses, scratch }, ...copies(false)];
}
