/**
 * Edits of a program's annotations that may give communication a loop: Stream on an axis of an op beside it, or no
 * annotation where one keeps the chunks out. They are applied to the Fusion, so that each can be predicted.
 */
import type { FusionData } from "../ir/fusion-data.ts";
import { plainDomain, type Tensor } from "../ir/domain.ts";
import { editableName } from "../ir/tensor-names.ts";
import { call } from "../ir/ops/call.ts";
import { constantValue } from "../ir/scalar/fold.ts";
import { parallelizeAxis, splitAxis } from "../ir/transforms.ts";
import type { LoopRefusal } from "../passes/stream-loops/loop-refusals.ts";
import { at } from "../support/invariant.ts";

export interface AnnotationEdit {
  /** As in the program: `y.outerSplit(0, 4).parallelize("Stream")`. */
  readonly text: string;
  /** Throws what the calls throw. */
  readonly apply: (data: FusionData) => FusionData;
}

/** The edits that may mend a refusal, of tensors that the user's code can name. */
export function editsFor(
  { tensor, made, rule }: LoopRefusal,
  data: FusionData,
  chunks: number,
): readonly AnnotationEdit[] {
  // Without overlap no edit makes a loop.
  if (rule === "overlap") return [];
  return [made, tensor].flatMap((id): readonly AnnotationEdit[] => {
    const own = data.tensors[id];
    const name = own === undefined ? null : editableName(own);
    if (own === undefined || name === null) return [];
    const without: AnnotationEdit = {
      text: `leave out the annotation of ${name}`,
      apply: (before) => withTensor(before, { ...own, mesh: null, domain: plainDomain(serial(own)) }),
    };
    return [...(rule === "annotated" && id === tensor ? [without] : []), ...streamEdits(own, chunks, name)];
  });
}

function serial({ domain }: Tensor): Tensor["domain"]["logical"] {
  return domain.logical.map((axis) => ({ ...axis, parallelType: "Serial" }));
}

/** One for each axis that has no type and enough indices. */
function streamEdits(tensor: Tensor, chunks: number, name: string): readonly AnnotationEdit[] {
  const { loop } = tensor.domain;
  const stream = loop.findIndex(({ parallelType }) => parallelType === "Stream");
  return loop.flatMap((axis, position): readonly AnnotationEdit[] => {
    const extent = constantValue(axis.extent) ?? Infinity;
    if (axis.parallelType !== "Serial" || axis.iterType !== "iteration" || extent < 2 * chunks) return [];
    const split = `${name}.outerSplit(${position}, ${chunks}).parallelize("Stream")`;
    const text = stream < 0 ? split : `${split}, instead of its Stream on axis ${stream}`;
    return [{ text, apply: (data) => streamed(data, tensor, { stream, position, chunks }) }];
  });
}

interface Streamed {
  /** The axis that has Stream; -1 without one. */
  readonly stream: number;
  readonly position: number;
  readonly chunks: number;
}

function streamed(data: FusionData, tensor: Tensor, { stream, position, chunks }: Streamed): FusionData {
  const { loop } = tensor.domain;
  const unset = stream < 0 ? tensor : parallelizeAxis(tensor, at(loop, stream).id, "Serial", call("parallelize"));
  const place = call("outerSplit", position, chunks);
  const outer = data.iterDomainCount;
  const split = splitAxis(unset, position, chunks, false, outer, place);
  const edited = parallelizeAxis(split, at(split.domain.loop, position).id, "Stream", place);
  return { ...withTensor(data, edited), iterDomainCount: outer + 2 };
}

function withTensor(data: FusionData, tensor: Tensor): FusionData {
  return { ...data, tensors: data.tensors.map((each) => (each.id === tensor.id ? tensor : each)) };
}
