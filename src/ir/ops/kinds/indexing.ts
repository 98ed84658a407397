/** The rows of ops that read or add at the indices of a tensor, and their checks of index tensors. */
import { type DType, dtypes, isPacked } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { type Tensor, withoutReductions } from "../../domain.ts";
import { extentsDiffer } from "../../scalar/fold.ts";
import { type Call, rankOf, reject, resolveAxis, shapeText } from "../call.ts";
import { commonDType, numberDType } from "../dtype-rules.ts";
import { elementWork, type OpBase, type OpRow, type SpecOf } from "../row.ts";
import { moves, shifted, zip } from "./families.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";

/** The dtype of the first operand; the second has the indices. Throws `dtype-mismatch`. */
function indexedDType(_: unknown, operands: readonly Tensor[], place: Call): DType {
  requireIndex(at(operands, 1), place);
  return at(operands, 0).dtype;
}

/** Throws `dtype-mismatch`. */
export function requireIndex({ id, dtype }: Tensor, place: Call): void {
  if (dtypes[dtype].family === "integer") return;
  reject(place, "dtype-mismatch", "indices are not integers", {
    found: `T${id} ${dtype}`,
    expected: "int or int64",
    help: 'make the indices integers: fusion.input([8], "int64"), or cast(index, "int64")',
  });
}

/** Throws `shape-mismatch` unless the tensors have equal extents on all axes but `axis`. */
function requireAlike(a: Tensor, b: Tensor, axis: number | null, place: Call): void {
  const [own, other] = [a, b].map(({ domain }) => withoutReductions(domain.logical));
  const fits =
    own?.length === other?.length &&
    own?.every(({ extent }, i) => i === axis || !extentsDiffer(extent, other?.[i]?.extent ?? extent)) === true;
  if (fits) return;
  reject(place, {
    code: "shape-mismatch",
    message: axis === null ? "indices and source differ in shape" : `indices differ in another axis than ${axis}`,
    found: `${shapeText(a)} and ${shapeText(b)}`,
    expected: axis === null ? "equal extents" : `equal extents on every axis but ${axis}`,
    help: "expand or slice the indices",
  });
}

// Reads one index of an axis per element of the output: numpy's take_along_axis, torch.gather with equal extents of the
// other axes. An index that is negative or too large gives 0.

export interface GatherOp extends OpBase {
  readonly kind: "Gather";
  /** Of both inputs: the tensor that is read, and the indices. */
  readonly axis: number;
}

/** Throws `axis-out-of-range`. */
export function gatherSpec(tensor: Tensor, axis: number, place: Call): SpecOf<GatherOp> {
  return { kind: "Gather", axis: resolveAxis(axis, rankOf(tensor), place) };
}

export const gatherRow: OpRow<GatherOp> = {
  ...moves,
  operands: [2, 2],
  dtype: indexedDType,
  shape: ({ axis }, operands, place) => {
    requireAlike(at(operands, 0), at(operands, 1), axis, place);
    return { axes: withoutReductions(at(operands, 1).domain.logical) };
  },
  respec: ({ axis }, operands, _, place) => gatherSpec(at(operands, 0), axis, place),
  pairs: ({ axis }, operands, output) => {
    const kept = withoutReductions(output);
    return [...zip(0, at(operands, 0), kept).toSpliced(axis, 1), ...zip(1, at(operands, 1), kept)];
  },
  whole: ({ axis }, operands) => [{ operand: 0, axis: at(at(operands, 0), axis) }],
  sliced: (op, [cut]) => ({ ...op, axis: shifted(op.axis, cut) }),
  work: (_, { output }) => 2 * elementWork * elementCount(output),
};

// Replaces an axis by the axes of an index tensor: torch.index_select, and an embedding if the axis is the first one.
// An index that is negative or too large gives 0.

export interface IndexSelectOp extends OpBase {
  readonly kind: "IndexSelect";
  /** Of the first input, the table. The second input has the indices. */
  readonly axis: number;
}

/** Throws `axis-out-of-range`. */
export function indexSelectSpec(table: Tensor, axis: number, place: Call): SpecOf<IndexSelectOp> {
  return { kind: "IndexSelect", axis: resolveAxis(axis, rankOf(table), place) };
}

export const indexSelectRow: OpRow<IndexSelectOp> = {
  ...moves,
  operands: [2, 2],
  dtype: indexedDType,
  shape: ({ axis }, operands) => {
    const [table, index] = [0, 1].map((i) => withoutReductions(at(operands, i).domain.logical));
    return { axes: (table ?? []).toSpliced(axis, 1, ...(index ?? [])) };
  },
  respec: ({ axis }, operands, _, place) => indexSelectSpec(at(operands, 0), axis, place),
  pairs: ({ axis }, operands, output) => {
    const [table, index] = [at(operands, 0), at(operands, 1)];
    const kept = withoutReductions(output);
    return [
      ...zip(0, table.slice(0, axis), kept),
      ...zip(0, table.slice(axis + 1), kept.slice(axis + index.length)),
      ...zip(1, index, kept.slice(axis)),
    ];
  },
  whole: ({ axis }, operands) => [{ operand: 0, axis: at(at(operands, 0), axis) }],
  sliced: (op, [cut]) => ({ ...op, axis: shifted(op.axis, cut) }),
  work: (_, { output }) => 2 * elementWork * elementCount(output),
};

// Adds each element of a source to the element of a tensor that an index names along one axis, in the order of the
// source: torch.scatter_add. Or writes it there, so that the last of equal indices counts: torch.scatter. An index that
// is negative or too large adds and writes nothing.

export interface ScatterAddOp extends OpBase {
  readonly kind: "ScatterAdd";
  /** Of all inputs: the tensor that is added to, the indices, and the source. */
  readonly axis: number;
  /** Whether elements of the source replace those of the tensor. If `below`, too large an index ends the run. */
  readonly sets?: "any" | "below";
}

/** Throws `axis-out-of-range`, `shape-mismatch`, `dtype-mismatch` for indices that are not integers. */
export function scatterAddSpec(
  operands: readonly Tensor[],
  axis: number,
  place: Call,
  sets?: ScatterAddOp["sets"],
): SpecOf<ScatterAddOp> {
  const [tensor, index, source] = [at(operands, 0), at(operands, 1), at(operands, 2)];
  const resolved = resolveAxis(axis, rankOf(tensor), place);
  requireIndex(index, place);
  requireAlike(tensor, index, resolved, place);
  requireAlike(index, source, null, place);
  return { kind: "ScatterAdd", axis: resolved, ...(sets === undefined ? {} : { sets }) };
}

export const scatterAddRow: OpRow<ScatterAddOp> = {
  ...moves,
  operands: [3, 3],
  dtype: (spec, operands, place) => {
    if (spec.sets !== undefined) return commonDType(spec, [at(operands, 0), at(operands, 2)], place);
    const dtype = numberDType(spec, [at(operands, 0), at(operands, 2)], place);
    if (!isPacked(dtype)) return dtype;
    return reject(place, "dtype-mismatch", "ScatterAdd adds in its dtype, and 16 bits are too few", {
      found: dtype,
      expected: "double, float, int or int64",
      help: 'convert with cast(tensor, "float"), and convert the sum back, as scatterAdd() does',
    });
  },
  shape: (_, operands) => ({ axes: withoutReductions(at(operands, 0).domain.logical) }),
  respec: ({ axis, sets }, operands, _, place) => scatterAddSpec(operands, axis, place, sets),
  pairs: ({ axis }, operands, output) => {
    const kept = withoutReductions(output);
    const others = [1, 2].flatMap((operand) => zip(operand, at(operands, operand), kept).toSpliced(axis, 1));
    return [...zip(0, at(operands, 0), kept).toSpliced(axis, 1), ...others];
  },
  whole: ({ axis }, operands) => operands.map((axes, operand) => ({ operand, axis: at(axes, axis) })),
  sliced: (op, [cut]) => ({ ...op, axis: shifted(op.axis, cut) }),
  flops: ({ sets }, { operands }) => (sets !== undefined ? 0 : elementCount(at(operands, 2))),
  work: (_, { operands, output }) => elementWork * (elementCount(output) + 3 * elementCount(at(operands, 2))),
};
