/**
 * Lets a reshape read what another op has gathered, instead of gathering its result once more.
 *
 *   T2[_] = Set(T0[DIDx]); T3[DIDx] = reshape(T0); T4[_] = Set(T3)
 * becomes
 *   T2[_] = Set(T0[DIDx]); T5[_] = Set(T0[DIDx]); T4[_] = reshape(T5)
 *
 * T2 and T5 are equal, so merge-sets gathers once. T2 may come in chunks, T4 may not. The backward pass of a linear has
 * such pairs: its operand's gradient reads the tokens, and its weight's gradient reads them as one axis of rows.
 */
import { type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { layoutOf } from "../../ir/layout.ts";
import type { Op, SetOp } from "../../ir/ops/op.ts";
import type { ReshapeOp } from "../../ir/ops/kinds/views/reshape.ts";
import { at } from "../../support/invariant.ts";
import { addSerialTensor, editFusion } from "../edit/tensor-edit.ts";
import { isResharding, sameMesh } from "./sharding.ts";
import { streamAxis } from "../../ir/stream.ts";

/** A Set that gives every device of a mesh the whole tensor, perhaps in chunks. */
interface Gather {
  readonly set: SetOp;
  /** The tensor that is gathered, or whose reshape is. */
  readonly source: TensorId;
  readonly view: ReshapeOp | null;
}

export function gathersBeforeViews(fusion: FusionData): FusionData {
  const gathers = gathersOf(fusion);
  // A view that is gathered in chunks stays gathered: merge-sets reads its chunks for the others.
  const inChunks = new Set(
    [...gathers.values()].flatMap(({ set, view }) =>
      view !== null && streamAxis(at(fusion.tensors, set.output)) !== null ? [view.output] : [],
    ),
  );
  const movable = [...gathers.values()].filter(({ view }) => view === null || !inChunks.has(view.output));
  const counts = new Map<TensorId, number>();
  for (const { source } of movable) counts.set(source, (counts.get(source) ?? 0) + 1);
  const moved = new Map<Op, Gather>(
    movable
      .filter(({ source, view }) => view !== null && (counts.get(source) ?? 0) > 1)
      .map((gather) => [gather.set, gather]),
  );
  if (moved.size === 0) return fusion;
  const edit = editFusion(fusion);
  for (const op of fusion.ops) {
    const gather = moved.get(op);
    const { view = null, source } = gather ?? {};
    if (view === null || source === undefined) {
      edit.ops.push(op);
      continue;
    }
    const from = at(edit.tensors, source);
    const whole = addSerialTensor(edit, from, withoutReductions(from.domain.logical), from.mesh);
    edit.ops.push({ kind: "Set", inputs: [source], output: whole.id });
    edit.ops.push({ ...view, inputs: [whole.id], output: op.output });
  }
  const read = new Set([...edit.ops.flatMap(({ inputs }) => inputs), ...fusion.outputs]);
  const passed = new Set<Op>([...moved.values()].flatMap(({ view }) => view ?? []));
  const ops = edit.ops.filter((op) => !passed.has(op) || read.has(op.output));
  return { ...fusion, ...edit, ops };
}

function gathersOf({ tensors, ops }: FusionData): ReadonlyMap<Op, Gather> {
  const producers = new Map(ops.map((op) => [op.output, op]));
  const found = new Map<Op, Gather>();
  for (const set of ops) {
    if (set.kind !== "Set" || !isResharding(set, tensors)) continue;
    const input = at(set.inputs, 0);
    const view = producers.get(input);
    const source = view?.kind === "Reshape" ? at(view.inputs, 0) : input;
    const [from, to] = [at(tensors, source), at(tensors, set.output)];
    const isWhole = layoutOf(to)?.shares.size === 0 && to.memory === "global";
    if (!isWhole || !sameMesh(from.mesh, to.mesh)) continue;
    found.set(set, { set, source, view: view?.kind === "Reshape" ? view : null });
  }
  return found;
}
