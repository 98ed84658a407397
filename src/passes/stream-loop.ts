/**
 * The statements of one Stream loop: allocations of what the loop computes, the loop that makes every worker stream wait for the
 * caller's, and the loop that runs one chunk per iteration. Two loops, because a worker that waited for the caller's stream after
 * that has waited for the previous worker would serialise all chunks.
 */
import type { IterDomain, Tensor, TensorId } from "../ir/domain.ts";
import type { Op } from "../ir/ops.ts";
import { binary, constant, named, type Scalar } from "../ir/scalar.ts";
import type { HostStream, Statement, StreamId } from "../host/nodes.ts";
import { makeId } from "../support/ids.ts";
import { at } from "../support/invariant.ts";
import { allocationSize } from "../ir/allocation-size.ts";
import { cloneAxes, newTensor } from "./fusion-edit.ts";
import { isOnDevice } from "./sharding.ts";
import { loopedOperandAxes, withoutLoopedAxis } from "./slice-op.ts";

/** Ops that share a loop over `axis`, the Stream axis of the first op's output. */
export interface StreamLoop {
  readonly kind: "StreamLoop";
  readonly axis: IterDomain;
  readonly members: { readonly op: Op; readonly looped: IterDomain }[];
  /** The looped axis of what each member makes. */
  readonly made: Map<TensorId, IterDomain>;
}

/** The tables of the program under construction. */
export interface LoopEdit {
  readonly tensors: Tensor[];
  readonly streams: HostStream[];
  iterDomainCount: number;
}

const loopIndex = { kind: "named", name: "streamIdx" } as const;

export function emitLoop(loop: StreamLoop, edit: LoopEdit, rank: number): readonly Statement[] {
  const local = loop.members.filter(({ op }) => isOnDevice(at(edit.tensors, op.output), rank));
  const allocations = local.map(({ op }): Statement => {
    const tensor = at(edit.tensors, op.output);
    const memory = tensor.memory === "symmetric" ? "symmetric" : "global";
    return { kind: "Allocate", tensor: tensor.id, memory, size: allocationSize(tensor), zeroInit: false };
  });
  const slices = createSlicer(edit);
  const body = loop.members.flatMap(({ op, looped }) => sliceStatements(op, looped, slices, edit));
  const caller = addStream(edit, null);
  const worker = addStream(edit, binary("mod", loopIndex, named("numberOfStreams")));
  const over = (statements: readonly Statement[]): Statement => ({
    kind: "ForLoop",
    iterDomain: loop.axis,
    index: loopIndex,
    start: constant(0),
    stop: loop.axis.extent,
    step: constant(1),
    body: statements,
  });
  const set = (stream: StreamId): Statement => ({ kind: "SetCurrentStream", stream });
  const synchronize = (stream: StreamId): Statement => ({ kind: "Synchronize", stream });
  return [
    ...allocations,
    { kind: "GetCurrentStream", stream: caller },
    over([set(worker), synchronize(caller)]),
    over([set(worker), ...body, set(caller), synchronize(worker)]),
  ];
}

function addStream(edit: LoopEdit, index: Scalar | null): StreamId {
  const id = makeId<StreamId>(edit.streams.length);
  edit.streams.push({ id, index });
  return id;
}

/** Selects of this loop, each made once: a tensor that was sliced (or written) before in the iteration keeps its slice. */
interface Slicer {
  /** The slice of `tensor` without `axis`, and the statement that binds it if it is new. */
  readonly slice: (
    tensor: TensorId,
    axis: IterDomain,
  ) => { readonly slice: TensorId; readonly binding: readonly Statement[] };
}

function createSlicer(edit: LoopEdit): Slicer {
  const made = new Map<string, TensorId>();
  const slice = (id: TensorId, axis: IterDomain): { slice: TensorId; binding: readonly Statement[] } => {
    const key = `${id}.${axis.id}`;
    const known = made.get(key);
    if (known !== undefined) return { slice: known, binding: [] };
    const tensor = at(edit.tensors, id);
    const position = tensor.domain.logical.findIndex((candidate) => candidate.id === axis.id);
    const kept = tensor.domain.logical.filter((candidate) => candidate.id !== axis.id);
    const axes = cloneAxes(kept, edit.iterDomainCount, (candidate) => candidate.parallelType);
    edit.iterDomainCount += axes.length;
    const created = { ...newTensor(edit.tensors.length, tensor, axes, tensor.mesh), memory: "local" as const };
    edit.tensors.push(created);
    made.set(key, created.id);
    const binding: Statement = {
      kind: "HirAliasSelect",
      input: id,
      output: created.id,
      axis: position,
      index: loopIndex,
    };
    return { slice: created.id, binding: [binding] };
  };
  return { slice };
}

/** Slices of the inputs in order, then of the output, then the op over them. */
function sliceStatements(op: Op, looped: IterDomain, slicer: Slicer, edit: LoopEdit): readonly Statement[] {
  const axes = loopedOperandAxes(op, looped, edit.tensors);
  const sliced = withoutLoopedAxis(op, axes, looped, edit.tensors);
  const bindings: Statement[] = [];
  const sliceOf = (id: TensorId, axis: IterDomain | null): TensorId => {
    if (axis === null) return id;
    const { slice, binding } = slicer.slice(id, axis);
    bindings.push(...binding);
    return slice;
  };
  const inputs = op.inputs.map((input, operand) => sliceOf(input, axes[operand] ?? null));
  const output = sliceOf(op.output, looped);
  return [...bindings, { ...sliced, inputs, output }];
}
