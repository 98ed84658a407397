/**
 * A line that differs from an earlier one in names alone, with operands of the same types and axes, makes the same ops.
 * They are copied: its row is not read again, and no shapes are derived. Large programs are layers of such lines.
 */
import { fusionState } from "../../ir/api/handle.ts";
import { TensorView } from "../../ir/api/tensor-view.ts";
import { type IterDomain, type IterDomainId, plainDomain, type TensorId } from "../../ir/domain.ts";
import { renamedOp } from "../../ir/ops/op.ts";
import { at, makeId } from "../../support/invariant.ts";
import { isSameType } from "./ops/reading.ts";
import type { Reader } from "./reader.ts";
import type { Operation } from "./syntax/nodes.ts";
import { computed, type MlirValue } from "./value.ts";

/** The results of the line; null if none like it was kept, or operands are others. */
export function repeatedLine(
  reader: Reader,
  { like, position }: Operation,
  operands: readonly MlirValue[],
): readonly MlirValue[] | null {
  const kept = like === null ? undefined : reader.lines.get(like);
  if (kept === undefined || !operands.every(isPlain)) return null;
  const builder = reader.fusion[fusionState];
  const given = operands.map((value) => value.tensor().id);
  const fits = kept.operands.every(
    ({ type, axes }, i) =>
      isSameType(at(operands, i).type, type) && haveSameAxes(axes, at(builder.tensors, at(given, i)).domain.logical),
  );
  if (!fits) return null;
  const [first, axisShift] = [builder.tensors.length, builder.iterDomainCount - kept.firstAxis];
  const idOf = (id: TensorId): TensorId =>
    id >= kept.first ? makeId(first + id - kept.first) : at(given, kept.given.indexOf(id));
  for (const tensor of kept.tensors) {
    const logical = tensor.domain.logical.map((axis): IterDomain => ({
      ...axis,
      id: makeId<IterDomainId>(axis.id + axisShift),
    }));
    const id = makeId<TensorId>(builder.tensors.length);
    builder.tensors.push({ ...tensor, id, domain: plainDomain(logical) });
    reader.positions[id] = position;
  }
  builder.iterDomainCount += kept.axes;
  for (const op of kept.ops) builder.ops.push(renamedOp(op, idOf));
  builder.snapshot = null;
  return kept.results.map(({ type, id }) => computed(type, [], new TensorView({ builder, id: idOf(id) })));
}

/** The results that `read` gives, which are kept if the operands' types and axes alone decide what it makes. */
export function keptLine(
  reader: Reader,
  { like, name }: Operation,
  operands: readonly MlirValue[],
  read: () => readonly MlirValue[],
): readonly MlirValue[] {
  const builder = reader.fusion[fusionState];
  const { tensors, ops, inputs } = builder;
  const before = { tensors: tensors.length, ops: ops.length, inputs: inputs.length, axes: builder.iterDomainCount };
  const values = read();
  if (like === null || reader.lines.has(like) || inputs.length > before.inputs) return values;
  if (!operands.every(isPlain) || !values.every(isPlain)) return values;
  // Other dialects place tensors, or call functions that do.
  if (!/^(?:stablehlo|chlo)\.(?!composite$)/u.test(name)) return values;
  const given = operands.map((value) => value.tensor().id);
  const results = values.map(({ type, tensor }) => ({ type, id: tensor().id }));
  const made = ops.slice(before.ops);
  const used = [...made.flatMap((op) => op.inputs), ...results.map(({ id }) => id)];
  const isWhole = used.every((id) => id >= before.tensors || given.includes(id));
  // Of one tensor twice, the ops do not say which operand they read.
  if (!isWhole || new Set(given).size < given.length) return values;
  reader.lines.set(like, {
    operands: operands.map(({ type }, i) => ({ type, axes: at(tensors, at(given, i)).domain.logical })),
    given,
    results,
    ops: made,
    tensors: tensors.slice(before.tensors),
    first: before.tensors,
    firstAxis: before.axes,
    axes: builder.iterDomainCount - before.axes,
  });
  return values;
}

/** A value that a run computes, alike on all devices. */
function isPlain({ known, axes, counts }: MlirValue): boolean {
  return known === null && axes.length === 0 && counts === undefined;
}

function haveSameAxes(a: readonly IterDomain[], b: readonly IterDomain[]): boolean {
  return a.length === b.length && a.every((axis, i) => isSameAxis(axis, at(b, i)));
}

function isSameAxis(a: IterDomain, b: IterDomain): boolean {
  const [own, other] = [a.extent, b.extent];
  return a.iterType === b.iterType && own.kind === "constant" && other.kind === "constant" && own.value === other.value;
}
