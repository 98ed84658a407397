/**
 * Makes ops of gathers that a loop makes in chunks and that ops without Stream read too, so that the loop and those
 * others can be regions of their own:
 *
 *   T2[Stream, _] = linear(T0[Stream, DIDx], T1); ...; T4 = matmul(T3, reshape(T0))
 * becomes
 *   T5[Stream, _] = set(T0); T2 = linear(T5, T1); ...; T4 = matmul(T3, reshape(T5))
 *
 * as lowering does for the whole program (insert-routes). The backward pass of a linear reads what the forward pass has
 * gathered.
 */
import { type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { type FusionData, readersOf } from "../../ir/fusion-data.ts";
import type { Op } from "../../ir/ops/op.ts";
import { addSerialTensor, editFusion } from "../../passes/edit/tensor-edit.ts";
import { shardsOf } from "../../ir/shards.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import { addCopy, isResharding, reshardedOperands } from "../../passes/routes/layouts.ts";
import { streamAxis } from "../../ir/stream.ts";
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
  const found = { placed, decomposed, makers: makersOf(placed), readers: readersOf(decomposed) };
  const gathers = decomposed.ops.flatMap((op) => loopGather(op, found) ?? []);
  if (gathers.length === 0) return placed;
  const positions = new Map(placed.ops.map((op, position) => [op, position]));
  const positionOf = ({ op }: Reader): number => positions.get(op) ?? 0;
  const edit = editFusion(placed);
  /** By reader: the operands that change. */
  const changes = new Map<Op, Map<TensorId, TensorId>>();
  const before = new Map<Op, Op[]>();
  for (const { source, gathered, readers } of gathers) {
    const like = at(decomposed.tensors, gathered);
    const [first] = readers.toSorted((a, b) => positionOf(a) - positionOf(b));
    const isOwn = isMade(placed, gathered);
    const whole = isOwn ? gathered : addCopy(edit, like).id;
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

/** Both Fusions, the ops of the placed one by their outputs, and those of the decomposed one by what they read. */
interface Found {
  readonly placed: FusionData;
  readonly decomposed: FusionData;
  readonly makers: ReadonlyMap<TensorId, Op>;
  readonly readers: ReadonlyMap<TensorId, readonly Op[]>;
}

function makersOf({ ops }: FusionData): Found["makers"] {
  return new Map(ops.map((op) => [op.output, op]));
}

/** Whether the tensor is one of the placed Fusion, and none that lowering has added. */
function isMade({ tensors }: FusionData, id: TensorId): boolean {
  return id < tensors.length;
}

/**
 * Null for other ops, for gathers that only their loop reads, for those with readers in other forms, and where all
 * readers read the Fusion's own Set already.
 */
function loopGather(set: Op, { placed, decomposed, makers, readers: readersOfAll }: Found): LoopGather | null {
  const { tensors } = decomposed;
  const { output: gathered } = set;
  if (set.kind !== "Set" || !isResharding(set, tensors)) return null;
  const isLoop = streamAxis(at(tensors, gathered)) !== null;
  // With insertReshardingAfter, a Set makes the result of the placed op.
  if (isMade(placed, gathered) && makers.get(gathered)?.kind !== "Set") return null;
  const source = at(set.inputs, 0);
  const readers = (readersOfAll.get(gathered) ?? []).flatMap((op): readonly (Reader | null)[] => {
    if (isMade(placed, op.output)) {
      const own = makers.get(op.output);
      return own?.inputs.includes(gathered) === true ? [] : [readerIn(makers, op, source)];
    }
    if (op.kind !== "Reshape") return [null];
    return (readersOfAll.get(op.output) ?? []).map((reader) => readerIn(makers, reader, source));
  });
  const found = readers.flatMap((reader) => reader ?? []);
  const inLoop = found.filter(({ op }) =>
    isLoop ? streamAxis(at(placed.tensors, op.output)) !== null : keepsGathered(op, source, placed.tensors),
  );
  const isShared = inLoop.length < found.length && (inLoop.length > 0 || isMade(placed, gathered));
  return isShared && found.length === readers.length ? { source, gathered, readers: found } : null;
}

/** The op of `placed` that makes what `lowered` makes; null if it does not read `source`, or not in this way. */
function readerIn(makers: Found["makers"], lowered: Op, source: TensorId): Reader | null {
  const op = makers.get(lowered.output);
  if (op === undefined) return null;
  if (op.inputs.includes(source)) return { op, view: null };
  const view = op.inputs
    .map((id) => makers.get(id))
    .find((maker) => maker?.kind === "Reshape" && maker.inputs.includes(source));
  return view === undefined ? null : { op, view };
}

/** Whether the op may be a loop over the devices: a contraction that keeps the axis that is gathered. */
function keepsGathered(op: Op, source: TensorId, tensors: readonly Tensor[]): boolean {
  if (op.kind !== "Linear" && op.kind !== "Matmul") return false;
  const [change] = reshardedOperands(op, tensors).filter(({ producer }) => producer.id === source);
  const axes = shardsOf(at(tensors, source)).flatMap(({ type, axis }) =>
    change?.types.includes(type) === true ? [axis.id] : [],
  );
  return axisMap(op, tensors).some(
    ({ producer, consumer, broadcast }) =>
      axes.includes(producer.id) && !broadcast && consumer.iterType !== "reduction",
  );
}
