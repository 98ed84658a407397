/**
 * Edits of a program's annotations that may shorten communication. It may get a loop, by Stream on an axis of an op
 * beside it, or by no annotation where one keeps the chunks out. Or less moves, because a tensor without a mesh gets the
 * mesh of a tensor beside it and is cut along one axis: heads of an attention whose rows would be gathered. They are
 * applied to the Fusion, so that each can be predicted.
 */
import type { FusionData } from "../ir/fusion-data.ts";
import { type ParallelType, plainDomain, type Tensor, type TensorId } from "../ir/domain.ts";
import { editableName } from "../ir/tensor-names.ts";
import { outputsOf } from "../ir/ops/op.ts";
import { shardsOf } from "../ir/shards.ts";
import { call } from "../ir/ops/call.ts";
import { constantValue } from "../ir/scalar/fold.ts";
import { parallelizeAxis, splitAxis } from "../ir/transforms.ts";
import type { LoopRefusal } from "../passes/stream-loops/loop-refusals.ts";
import type { Equal } from "./layers.ts";
import { at, invariant } from "../support/invariant.ts";

export interface AnnotationEdit {
  /** As in the program: `y.outerSplit(0, 4).parallelize("Stream")`. */
  readonly text: string;
  /** Throws what the calls throw. */
  readonly apply: (data: FusionData) => FusionData;
}

/**
 * Lists of edits that may mend refusals, of tensors that the user's code can name. Of each list, the fastest is worth
 * advice. Refusals of equal layers are mended alike.
 */
export function editsFor(
  { entries, count }: Equal<LoopRefusal>,
  data: FusionData,
  chunks: number,
): readonly (readonly AnnotationEdit[])[] {
  const missing = count - entries.length;
  const [first = [], ...others] = entries.map((refusal) => editsOf(refusal, data, chunks));
  const alike = others.filter(
    (each) => each.length === first.length && each.every((list, i) => list.length === first[i]?.length),
  );
  return first.map((list, i) =>
    list.map((edit, j) => ofAll([edit, ...alike.flatMap((each) => each[i]?.[j] ?? [])], missing)),
  );
}

/** Beyond so many, their number says which are edited. */
const mostSpelledOut = 2;

/** `missing`: equal ones of layers that were left out. */
function ofAll(edits: readonly AnnotationEdit[], missing: number): AnnotationEdit {
  const distinct = [...new Map(edits.map((edit) => [edit.text, edit])).values()];
  const [first] = distinct;
  invariant(first !== undefined, "a refusal has at least itself");
  const { text, apply } = distinct.slice(1).reduce(joined, first);
  const count = distinct.length + missing;
  return { text: count <= mostSpelledOut ? text : `${first.text}, and ${count - 1} more alike`, apply };
}

function editsOf(
  { from, tensor, made, rule }: LoopRefusal,
  data: FusionData,
  chunks: number,
): readonly (readonly AnnotationEdit[])[] {
  // Without overlap no edit makes a loop.
  const looped =
    rule === "overlap"
      ? []
      : [made, tensor].flatMap((id) => loopEdits(data, id, chunks, rule === "annotated" && id === tensor));
  const beside = data.ops.flatMap(({ inputs }) => (inputs.includes(from) ? inputs : []));
  const placed = [...new Set([made, from, ...beside])].map((id) => placements(data, id, chunks));
  return [...looped.map((each) => [each]), ...placed];
}

function loopEdits(data: FusionData, id: TensorId, chunks: number, isInTheWay: boolean): readonly AnnotationEdit[] {
  const own = data.tensors[id];
  const name = own === undefined ? null : editableName(own);
  if (own === undefined || name === null) return [];
  const without: AnnotationEdit = {
    text: `leave out the annotation of ${name}`,
    apply: (before) => withTensor(before, { ...own, mesh: null, domain: plainDomain(serial(own)) }),
  };
  return [...(isInTheWay ? [without] : []), ...streamEdits(own, chunks, name)];
}

function serial({ domain }: Tensor): Tensor["domain"]["logical"] {
  return domain.logical.map((axis) => ({ ...axis, parallelType: "Serial" }));
}

/** One for each axis that has no type and enough indices. */
function streamEdits(tensor: Tensor, chunks: number, name: string): readonly AnnotationEdit[] {
  const { loop } = tensor.domain;
  const stream = loop.findIndex(({ parallelType }) => parallelType === "Stream");
  const other = stream < 0 ? null : withoutStream(tensor, stream, name);
  const bare = other?.tensor ?? tensor;
  const unset: AnnotationEdit["apply"] = (data) =>
    withTensor(data, parallelizeAxis(at(data.tensors, tensor.id), at(loop, stream).id, "Serial", call("parallelize")));
  const without = other === null ? [] : [{ text: `leave out the Stream of ${name}`, apply: unset }];
  const moved = bare.domain.loop.flatMap((_, position): readonly AnnotationEdit[] => {
    const cut = cutEdit(bare, name, position, "Stream", chunks);
    if (cut === null) return [];
    if (other === null) return [cut];
    if (position === other.axis) return [];
    return [{ text: other.text(cut.text), apply: (data) => cut.apply(withTensor(data, bare)) }];
  });
  return [...without, ...moved];
}

/** A tensor whose Stream goes to another axis. */
interface WithoutStream {
  readonly tensor: Tensor;
  /** The axis that had Stream; its number is of `tensor`. */
  readonly axis: number;
  /** The edit, of the call that puts Stream on another axis. */
  readonly text: (cut: string) => string;
}

/**
 * The user's call is replaced where all of the tensor's cuts are in it. Other calls count axes after its split: they stay
 * as they are, with its axis Serial.
 */
function withoutStream(tensor: Tensor, stream: number, name: string): WithoutStream {
  const { logical, loop, transforms, allocation } = tensor.domain;
  const { id } = at(loop, stream);
  const serial = parallelizeAxis(tensor, id, "Serial", call("parallelize"));
  const [split, ...others] = transforms;
  if (split === undefined) {
    return { tensor: serial, axis: stream, text: (cut) => `${cut} in place of ${name}.axis(${stream})${toStream}` };
  }
  if (split.kind === "merge" || split.outer !== id || others.length > 0 || allocation !== null) {
    const first = `${name}.axis(${stream}).parallelize("Serial")`;
    return { tensor: serial, axis: stream, text: (cut) => `${first}; ${cut}, after the other calls on ${name}` };
  }
  const axis = logical.findIndex((each) => each.id === split.input);
  const made = split.innerSplit
    ? `split(${axis}, ${split.factor}).axis(${axis})`
    : `outerSplit(${axis}, ${split.factor})`;
  return {
    tensor: { ...tensor, domain: plainDomain(logical) },
    axis,
    text: (cut) => `${cut} in place of ${name}.${made}${toStream}`,
  };
}

const toStream = '.parallelize("Stream")';

/**
 * Of a tensor without annotations: the mesh of a neighbour, with a DID type of it on each axis, alone and beside chunks
 * of another axis.
 */
function placements(data: FusionData, id: TensorId, chunks: number): readonly AnnotationEdit[] {
  const own = data.tensors[id];
  const name = own === undefined || own.mesh !== null ? null : editableName(own);
  if (own === undefined || name === null) return [];
  const positions = [...own.domain.loop.keys()];
  const seen = new Set<string>();
  return neighbours(data, id).flatMap((neighbour) => {
    const { mesh } = neighbour;
    const neighbourName = editableName(neighbour);
    if (mesh === null || neighbourName === null) return [];
    const onMesh: AnnotationEdit = {
      text: `${name}.setDeviceMesh(${neighbourName}.mesh!)`,
      apply: (before) => withTensor(before, { ...at(before.tensors, id), mesh }),
    };
    return shardsOf(neighbour).flatMap(({ type }) => {
      const key = `${String(mesh)} ${type}`;
      if (seen.has(key)) return [];
      seen.add(key);
      return positions.flatMap((position): readonly AnnotationEdit[] => {
        const cut = cutEdit(own, name, position, type, mesh.size(type));
        if (cut === null) return [];
        const other = positions.find(
          (each) => each !== position && cutEdit(own, name, each, "Stream", chunks) !== null,
        );
        const streamed = other === undefined ? null : cutEdit(own, name, other, "Stream", chunks);
        const placed = joined(onMesh, cut);
        if (other === undefined || streamed === null) return [placed];
        // The later axis first: a split moves those after it.
        const [first, second] = other > position ? [streamed, cut] : [cut, streamed];
        return [placed, joined(joined(onMesh, first), second)];
      });
    });
  });
}

/** Those with a mesh that an op reads or makes beside the tensor, in the order of the ops. */
function neighbours({ ops, tensors }: FusionData, id: TensorId): readonly Tensor[] {
  const beside = ops.flatMap((op) => {
    const all = [...op.inputs, ...outputsOf(op)];
    return all.includes(id) ? all : [];
  });
  return [...new Set(beside)].map((each) => at(tensors, each)).filter(({ mesh }) => mesh !== null);
}

function joined(first: AnnotationEdit, second: AnnotationEdit): AnnotationEdit {
  return { text: `${first.text}; ${second.text}`, apply: (data) => second.apply(first.apply(data)) };
}

/** Null for an axis that has a type, or too few indices. Fewer sequences than `most` chunks are a chunk each. */
function cutEdit(
  { id, domain }: Tensor,
  name: string,
  position: number,
  type: ParallelType,
  most: number,
): AnnotationEdit | null {
  const axis = at(domain.loop, position);
  const extent = constantValue(axis.extent) ?? Infinity;
  if (axis.parallelType !== "Serial" || axis.iterType !== "iteration") return null;
  const parts = type === "Stream" ? Math.min(most, extent) : most;
  if (extent < parts || parts < (type === "Stream" ? 2 : 1)) return null;
  return {
    text: `${name}.outerSplit(${position}, ${parts}).parallelize("${type}")`,
    apply: (data) => {
      const place = call("outerSplit", position, parts);
      const outer = data.iterDomainCount;
      const split = splitAxis(at(data.tensors, id), position, parts, false, outer, place);
      const edited = parallelizeAxis(split, at(split.domain.loop, position).id, type, place);
      return { ...withTensor(data, edited), iterDomainCount: outer + 2 };
    },
  };
}

function withTensor(data: FusionData, tensor: Tensor): FusionData {
  return { ...data, tensors: data.tensors.map((each) => (each.id === tensor.id ? tensor : each)) };
}
