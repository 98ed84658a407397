/**
 * Makes ops of gathers that a loop makes in chunks and that ops without Stream read too, so that the loop and those
 * others can be regions of their own:
 *
 *   T2[Stream, _] = linear(T0[Stream, DIDx], T1); ...; T4 = matmul(T3, reshape(T0))
 * becomes
 *   T5[Stream, _] = set(T0); T2 = linear(T5, T1); ...; T4 = matmul(T3, reshape(T5))
 *
 * as lowering does for the whole program (merge-sets). The backward pass of a linear reads what the forward pass has
 * gathered.
 */
import { type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { Op } from "../../ir/ops/op.ts";
import { addSerialTensor, editFusion, type FusionEdit, modelOf, redomain } from "../../passes/edit/tensor-edit.ts";
import { isResharding, streamAxis } from "../../passes/reshard/sharding.ts";
import { at } from "../../support/invariant.ts";

/** An op of the placed Fusion that reads what is gathered, perhaps through a reshape. */
interface Reader {
  readonly op: Op;
  readonly view: Op | null;
}

interface LoopGather {
  /** The tensor that is gathered. */
  readonly source: TensorId;
  /** In the decomposed Fusion. */
  readonly gathered: TensorId;
  readonly readers: readonly Reader[];
}

/** `placed` with those gathers; the same object if there are none. `decomposed`: what lowering makes of it. */
export function withLoopGathers(placed: FusionData, decomposed: FusionData): FusionData {
  const gathers = decomposed.ops.flatMap((op) => loopGather(op, placed, decomposed) ?? []);
  if (gathers.length === 0) return placed;
  const edit = editFusion(placed);
  /** By reader: the operands that change. */
  const changes = new Map<Op, Map<TensorId, TensorId>>();
  const before = new Map<Op, Op[]>();
  for (const { source, gathered, readers } of gathers) {
    const like = at(decomposed.tensors, gathered);
    const [first] = readers.toSorted((a, b) => placed.ops.indexOf(a.op) - placed.ops.indexOf(b.op));
    const isOwn = isMade(placed, gathered);
    const whole = isOwn ? gathered : addLike(edit, like);
    if (!isOwn && first !== undefined) {
      before.set(first.op, [...(before.get(first.op) ?? []), { kind: "Set", inputs: [source], output: whole }]);
    }
    for (const { op, view } of readers) {
      const change = changes.get(op) ?? new Map<TensorId, TensorId>();
      changes.set(op, change);
      if (view === null) {
        change.set(source, whole);
        continue;
      }
      const shaped = at(placed.tensors, view.output);
      const copy = addSerialTensor(edit, shaped, withoutReductions(shaped.domain.logical), like.mesh);
      before.set(op, [...(before.get(op) ?? []), { ...view, inputs: [whole], output: copy.id }]);
      change.set(view.output, copy.id);
    }
  }
  for (const op of placed.ops) {
    const change = changes.get(op);
    edit.ops.push(...(before.get(op) ?? []));
    edit.ops.push(change === undefined ? op : { ...op, inputs: op.inputs.map((id) => change.get(id) ?? id) });
  }
  const read = new Set([...edit.ops.flatMap(({ inputs }) => inputs), ...placed.outputs]);
  const views = new Set(gathers.flatMap(({ readers }) => readers.flatMap(({ view }) => view ?? [])));
  return { ...placed, ...edit, ops: edit.ops.filter((op) => !views.has(op) || read.has(op.output)) };
}

/** Whether the tensor is one of the placed Fusion, and none that lowering has added. */
function isMade({ tensors }: FusionData, id: TensorId): boolean {
  return id < tensors.length;
}

/** A tensor with the axes of `like`, and their splits and types, under new numbers. */
function addLike(edit: FusionEdit, like: Tensor): TensorId {
  const axes = withoutReductions(like.domain.logical);
  const made = addSerialTensor(edit, like, axes, like.mesh);
  redomain(
    edit,
    made,
    made.domain.logical.map((axis, i) => ({ axis, model: modelOf(like, at(axes, i)) })),
  );
  return made.id;
}

/**
 * Null for other ops, for gathers that only their loop reads, for those with readers in other forms, and where all
 * readers read the Fusion's own Set already.
 */
function loopGather(set: Op, placed: FusionData, decomposed: FusionData): LoopGather | null {
  const { tensors, ops } = decomposed;
  const { output: gathered } = set;
  if (set.kind !== "Set" || !isResharding(set, tensors)) return null;
  if (streamAxis(at(tensors, gathered)) === null) return null;
  // With insertReshardingAfter, a Set makes the result of the placed op.
  if (isMade(placed, gathered) && !placed.ops.some(({ kind, output }) => kind === "Set" && output === gathered)) {
    return null;
  }
  const source = at(set.inputs, 0);
  const readers = ops.flatMap((op): readonly (Reader | null)[] => {
    if (!op.inputs.includes(gathered)) return [];
    if (isMade(placed, op.output)) {
      const reads = placed.ops.find(({ output }) => output === op.output)?.inputs.includes(gathered);
      return reads === true ? [] : [readerIn(placed, op, source)];
    }
    if (op.kind !== "Reshape") return [null];
    return ops.filter(({ inputs }) => inputs.includes(op.output)).map((reader) => readerIn(placed, reader, source));
  });
  const found = readers.flatMap((reader) => reader ?? []);
  const inLoop = found.filter(({ op }) => streamAxis(at(placed.tensors, op.output)) !== null);
  const isShared = inLoop.length < found.length && (inLoop.length > 0 || isMade(placed, gathered));
  return isShared && found.length === readers.length ? { source, gathered, readers: found } : null;
}

/** The op of `placed` that makes what `lowered` makes; null if it does not read `source`, or not in this way. */
function readerIn({ ops }: FusionData, lowered: Op, source: TensorId): Reader | null {
  const op = ops.find(({ output }) => output === lowered.output);
  if (op === undefined) return null;
  if (op.inputs.includes(source)) return { op, view: null };
  const view = ops.find(
    ({ kind, inputs, output }) => kind === "Reshape" && inputs.includes(source) && op.inputs.includes(output),
  );
  return view === undefined ? null : { op, view };
}
