/** Rows of ATen ops that make tensors from numbers, read at indices, and count sizes; and complex numbers. */
import type { Extent } from "../../../ir/api/extent.ts";
import { eq, ge, logicalXor, where } from "../../../ir/api/ops/choices.ts";
import { inDType, scatterSet } from "../../../ir/api/ops/compositions/compose.ts";
import { paddedEmbedding } from "../../../ir/api/ops/compositions/own-gradients.ts";
import { iota } from "../../../ir/api/ops/creation.ts";
import { add, mul, sub } from "../../../ir/api/ops/elementwise.ts";
import { cos, sin } from "../../../ir/api/ops/functions.ts";
import { rowsAt } from "../../../ir/gradients/rules.ts";
import { gather, indexSelect, scatterAdd } from "../../../ir/api/ops/indexing.ts";
import { tril, triu } from "../../../ir/api/ops/ordered.ts";
import { cat, unsqueeze } from "../../../ir/api/ops/shape.ts";
import { reshape, select, slice } from "../../../ir/api/ops/views.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { constantValue, extentsDiffer, foldAdd, foldDiv, foldMul, foldProduct } from "../../../ir/scalar/fold.ts";
import { binary, constant, type Scalar } from "../../../ir/scalar/scalar.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { alongAxis, permutedTo, withAxes } from "../../views.ts";
import { axisIn, type NodeOperands } from "../operands.ts";
import { raised } from "../../views.ts";
import { asCount, convert, factorIn, fullOf, rotatedPairs, toBool } from "./elementwise.ts";
import { type AtenRow, type AtenRows, atenRows } from "./row.ts";
import { expanded, reshaped, scalarIn, stacked } from "./shape.ts";

/** `end` after `start`; numbers with a fraction count by a step that is scaled. */
const arange: AtenRow = (o) => {
  const [start, step] = [o.number("start", 0), o.number("step", 1)];
  // A size beyond every tensor is a number with a fraction.
  const end = typeof o.node.inputs.get("end") === "number" ? o.number("end") : o.size("end");
  const dtype = o.resultDType ?? "int64";
  const count = (): Extent => {
    if (typeof end === "number") return Math.max(0, Math.ceil((end - start) / step));
    return step === 1
      ? foldAdd(scalarIn(end), constant(-start))
      : o.refuse(`a step of ${step}`, "a step of 1 to a symbolic end");
  };
  if (Number.isInteger(start) && Number.isInteger(step)) {
    const isInteger = dtypes[dtype].family === "integer";
    const y = iota(o.fusion, count(), { start, step, dtype: isInteger ? dtype : "int64" });
    return isInteger ? y : inDType(y, dtype);
  }
  return add(mul(inDType(iota(o.fusion, count()), dtype), step), start);
};

/** prims.iota: `length` numbers. */
const counted: AtenRow = (o) =>
  iota(o.fusion, o.size("length"), { start: o.whole("start"), step: o.whole("step"), dtype: o.resultDType ?? "int64" });

/** `shape` of the argument, or of the tensor that it is like. */
function filled(value: (o: NodeOperands) => number): AtenRow {
  return (o) => {
    const like = o.has("size") ? null : o.tensorOr("self");
    const shape = o.has("size") ? o.sizes("size") : (like?.extents ?? []);
    return fullOf(o, shape, value(o), o.dtype() ?? o.resultDType ?? "float");
  };
}

/** The elements of another tensor, in the dtype and shape of this one. */
const overwritten: AtenRow = (o) => {
  const [x, from] = [o.tensor("self"), o.tensor("src")];
  return expanded(o, x.dtype === "bool" ? toBool(from) : inDType(from, x.dtype), x.extents);
};

const refilled: AtenRow = (o) => {
  const [x, value] = [o.tensor("self"), o.operand("value")];
  if (typeof value !== "object") return fullOf(o, x.extents, Number(value), x.dtype);
  return expanded(o, x.dtype === "bool" ? toBool(value) : inDType(value, x.dtype), x.extents);
};

function triangle(keep: typeof tril): AtenRow {
  return (o) => keep(asCount(o.tensor("self")), o.whole("diagonal", 0));
}

const embeddingRow: AtenRow = (o) =>
  paddedEmbedding(o.tensor("weight"), o.tensor("indices"), o.whole("padding_idx", -1));

/** An index without axes is one of a single element. */
const indexSelectRow: AtenRow = (o) => {
  const index = o.tensor("index");
  return indexSelect(o.tensor("self"), o.whole("dim"), index.rank === 0 ? withAxes(index, 0, 1) : index);
};

/** PyTorch's index may be shorter than the tensor along other axes; Braid's has the same extents. */
const gatherRow: AtenRow = (o) => {
  const [x, index] = [o.tensor("self"), o.tensor("index")];
  const axis = axisIn(o.whole("dim"), x.rank);
  const stops = x.extents.map((extent, i) => (i === axis ? extent : at(index.extents, i)));
  const isWhole = stops.every((extent, i) => !extentsDiffer(extent, at(x.extents, i)));
  const starts = x.extents.map(() => 0);
  return gather(isWhole ? x : slice(x, starts, stops), axis, index);
};

interface Indexed {
  /** The axis that the indices are of, in `merged`. */
  readonly axis: number;
  readonly index: TensorView;
  /** The tensor, whose indexed axes are one. */
  readonly merged: TensorView;
  /** The tensor, with the axes in this order where it is another one. */
  readonly x: TensorView;
  readonly order: readonly number[] | null;
}

/**
 * x[i, j, ..]: index tensors of neighbouring axes, which broadcast to one shape, are one index into the merged axes. With
 * a gap between them, PyTorch puts the axes of the result in front: so does this with the axes that they are of.
 */
function indexed(o: NodeOperands): Indexed {
  const whole = o.tensor("self");
  const given = o.tensorsOrNull("indices");
  const indices = given.flatMap((each) => (each === null ? [] : [each]));
  if (indices.length === 0) return o.refuse("no index", "index tensors");
  if (indices.some(({ dtype }) => dtypes[dtype].family !== "integer")) {
    return o.refuse("a mask as index", "indices that are integers: the size of a masked selection is not known");
  }
  const named = [...given.keys()].filter((axis) => given[axis] !== null);
  const hasGap = named.some((axis, i) => axis !== at(named, 0) + i);
  const order = hasGap ? [...named, ...[...whole.extents.keys()].filter((axis) => !named.includes(axis))] : null;
  const x = order === null ? whole : permutedTo(whole, order);
  const first = order === null ? at(named, 0) : 0;
  const rank = Math.max(...indices.map((each) => each.rank));
  const sizes = x.extents.slice(first, first + indices.length);
  const flat = indices
    .map((each, i) => fromEnd(raised(each, rank), at(sizes, i)))
    .reduce((sum, each, i) => {
      const size = constantValue(at(sizes, i));
      return size === null
        ? o.refuse("an index of a symbolic axis", "sizes that are known")
        : add(mul(sum, size), each);
    });
  const shape = [...x.extents.slice(0, first), foldProduct(sizes), ...x.extents.slice(first + indices.length)];
  return { axis: first, index: flat, merged: indices.length === 1 ? x : reshape(x, shape), x, order };
}

/** A mask of the first axes, beside no other index. */
function maskOf(o: NodeOperands): TensorView | null {
  const [mask = null, ...others] = o.tensorsOrNull("indices");
  return mask?.dtype === "bool" && others.every((each) => each === null) ? mask : null;
}

const indexRow: AtenRow = (o) => {
  const { merged, axis, index } = indexed(o);
  return indexSelect(merged, axis, index);
};

/** self[i, j, ..] = values. PyTorch leaves open which value an index that is there twice gives: here the last one. */
const indexPut: AtenRow = (o) => {
  const mask = maskOf(o);
  if (mask !== null) return maskedPut(o, mask);
  const { merged, axis, index, x, order } = indexed(o);
  const shape = merged.extents.toSpliced(axis, 1, ...index.extents);
  const [places, rows] = rowsAt(axis, index, expanded(o, o.tensor("values"), shape));
  const put = o.flag("accumulate", false) ? scatterAdd : scatterSet;
  const y = reshaped(o, put(merged, axis, places, rows), x.extents);
  return order === null
    ? y
    : permutedTo(
        y,
        [...order.keys()].map((axis) => order.indexOf(axis)),
      );
};

/** self[mask] = value: one value, or one for each element of the axes after the mask. */
function maskedPut(o: NodeOperands, mask: TensorView): TensorView {
  const [x, value] = [o.tensor("self"), o.tensor("values")];
  const isKnown = value.rank <= x.rank - mask.rank || value.extents.every((extent) => constantValue(extent) === 1);
  if (!isKnown) return o.refuse("values for each element of a mask", "one value: how many a mask takes is not known");
  const given = value.rank === 0 ? value : raised(value, x.rank);
  const set = o.flag("accumulate", false) ? add(x, given) : inDType(given, x.dtype);
  return where(withAxes(mask, mask.rank, x.rank - mask.rank), set, x);
}

/** PyTorch's index may be shorter than the tensor along other axes; Braid's has the same extents. */
function scatterRow(put: typeof scatterAdd): AtenRow {
  return (o) => {
    const [x, index] = [o.tensor("self"), o.tensor("index")];
    const axis = axisIn(o.whole("dim"), x.rank);
    if (index.extents.some((extent, i) => i !== axis && extentsDiffer(extent, at(x.extents, i)))) {
      return o.refuse("indices of a part of the tensor", "indices with the extents of the tensor along other axes");
    }
    const source = o.has("src") ? o.tensor("src") : fullOf(o, index.extents, o.number("value"), x.dtype);
    const isWhole = source.extents.every((extent, i) => !extentsDiffer(extent, at(index.extents, i)));
    const starts = source.extents.map(() => 0);
    return put(x, axis, index, isWhole ? source : slice(source, starts, index.extents));
  };
}

/** Rows of `source` at `index` along an axis: added, times alpha, or set. */
function indexRows(put: typeof scatterAdd, source: (o: NodeOperands, x: TensorView) => TensorView): AtenRow {
  return (o) => {
    const [x, index] = [o.tensor("self"), o.tensor("index")];
    if (x.rank === 0) return o.refuse("a tensor without axes", "a tensor with an axis");
    const axis = axisIn(o.whole("dim"), x.rank);
    const flat = index.rank === 0 ? withAxes(index, 0, 1) : index;
    const places = fromEnd(flat, at(x.extents, axis));
    const shape = x.extents.with(axis, at(flat.extents, 0));
    return put(x, axis, ...rowsAt(axis, places, expanded(o, inDType(source(o, x), x.dtype), shape)));
  };
}

const scaledSource = (o: NodeOperands): TensorView => {
  const alpha = factorIn(o, "alpha");
  return alpha === 1 ? o.tensor("source") : mul(o.tensor("source"), alpha);
};

/** PyTorch's indices and tensor stretch to each other along the other axes. */
const takeAlong: AtenRow = (o) => {
  const [x, index] = [o.tensor("self"), o.tensor("indices")];
  if (!o.has("dim")) return o.refuse("no dim", "an axis");
  const axis = axisIn(o.whole("dim"), x.rank);
  const shape = x.extents.map((extent, i) => (constantValue(extent) === 1 ? at(index.extents, i) : extent));
  const whole = expanded(o, x, shape.with(axis, at(x.extents, axis)));
  const places = expanded(o, index, shape.with(axis, at(index.extents, axis)));
  return gather(whole, axis, fromEnd(places, at(x.extents, axis)));
};

const oneHot: AtenRow = (o) => {
  const [index, count] = [o.tensor("self"), o.whole("num_classes", -1)];
  if (count < 0) return o.refuse("a number of classes that the run knows", "num_classes");
  return inDType(
    eq(unsqueeze(index, index.rank), alongAxis(iota(o.fusion, count), index.rank, index.rank + 1)),
    "int64",
  );
};

/** Negative indices count from the end. */
function fromEnd(index: TensorView, size: Scalar): TensorView {
  const length = constantValue(size);
  return length === null ? index : where(ge(index, 0), index, add(index, length));
}

/** x[i] - x[i - 1] along an axis, with the tensors before and after it. */
const diff: AtenRow = (o) => {
  const parts = [o.tensorOr("prepend"), o.tensor("self"), o.tensorOr("append")].flatMap((x) => x ?? []);
  let x = parts.length === 1 ? at(parts, 0) : cat(parts, o.whole("dim", -1));
  const axis = axisIn(o.whole("dim", -1), x.rank);
  for (let i = o.whole("n", 1); i > 0; i--) {
    const extent = at(x.extents, axis);
    const before = foldAdd(extent, constant(-1));
    const zeros = x.extents.map(() => constant(0));
    const [next, last] = [
      slice(x, zeros.with(axis, constant(1)), x.extents),
      slice(x, zeros, x.extents.with(axis, before)),
    ];
    x = x.dtype === "bool" ? logicalXor(next, last) : sub(next, last);
  }
  return x;
};

const asComplex: AtenRow = (o) => {
  const x = o.tensor("self");
  const { provenance } = o.building;
  const made = provenance.get(x.id);
  const flat = made?.kind === "reshape" && made.of.rank === x.rank - 1 ? made.of : null;
  const wider = flat === null ? undefined : provenance.get(flat.id);
  const pairs = wider?.kind === "widened" ? wider.of : flat;
  const rows = x.extents.slice(0, -2);
  const isCut = pairs !== null && rows.every((extent, axis) => !extentsDiffer(extent, at(pairs.extents, axis)));
  return { kind: "complex", re: select(x, -1, 0), im: select(x, -1, 1), ...(isCut ? { pairs } : {}) };
};

const asReal: AtenRow = (o) => {
  const value = o.value("self");
  if (value.kind !== "complex") return o.refuse("view_as_real of a real tensor", "a complex tensor");
  if (value.rotated === undefined) return stacked([value.re, value.im], -1);
  const y = rotatedPairs(value.rotated, value.re.dtype);
  o.building.provenance.set(y.id, { kind: "rotated", of: value.rotated });
  return reshaped(o, y, [...value.re.extents, 2]);
};

const polar: AtenRow = (o) => {
  const [abs, angle] = [o.tensor("abs"), o.tensor("angle")];
  return { kind: "complex", re: mul(abs, cos(angle)), im: mul(abs, sin(angle)) };
};

export const atenIndexingRows: AtenRows = atenRows({
  "arange.default(end * factory) arange.start arange.start_step(start end step)": arange,
  "full.default(size fill_value * factory) new_full.default(self size fill_value * factory) full_like.default(self fill_value * factory)":
    filled((o) => o.number("fill_value")),
  "ones.default(size * factory) new_ones.default(self size * factory) ones_like.default(self * factory)": filled(
    () => 1,
  ),
  "zeros.default(size * factory) new_zeros.default(self size * factory) zeros_like.default(self * factory)": filled(
    () => 0,
  ),
  // What an empty tensor holds is nobody's to read.
  "empty.memory_format(size * factory) new_empty.default(self size * factory) empty_like.default(self * factory)":
    filled(() => 0),
  "eye.default(n * factory) eye.m(n m * factory)": (o) => {
    const [rows, columns] = [o.size("n"), o.has("m") ? o.size("m") : o.size("n")];
    const isDiagonal = eq(alongAxis(iota(o.fusion, rows), 0, 2), alongAxis(iota(o.fusion, columns), 1, 2));
    return inDType(isDiagonal, o.resultDType ?? "float");
  },
  "copy.default(self src non_blocking)": overwritten,
  "fill.Scalar fill.Tensor(self value)": refilled,
  "zero.default": (o) => fullOf(o, o.tensor("self").extents, 0, o.tensor("self").dtype),
  "scalar_tensor.default(s * factory)": filled((o) => o.number("s")),
  "tril.default(self diagonal)": triangle(tril),
  "triu.default(self diagonal)": triangle(triu),
  "embedding.default(weight indices padding_idx scale_grad_by_freq sparse)": embeddingRow,
  "index_select.default(self dim index)": indexSelectRow,
  "gather.default(self dim index * sparse_grad)": gatherRow,
  "index.Tensor _unsafe_index.Tensor(self indices)": indexRow,
  "index_put.default _unsafe_index_put.default(self indices values accumulate)": indexPut,
  "scatter.value(self dim index value) scatter.src(self dim index src)": scatterRow(scatterSet),
  "index_add.default(self dim index source * alpha)": indexRows(scatterAdd, scaledSource),
  "index_copy.default(self dim index source)": indexRows(scatterSet, (o) => o.tensor("source")),
  "index_fill.int_Scalar(self dim index value)": indexRows(scatterSet, (o, x) =>
    fullOf(o, [], o.number("value"), x.dtype),
  ),
  "take_along_dim.default(self indices dim)": takeAlong,
  "one_hot.default(self num_classes)": oneHot,
  "scatter_add.default(self dim index src)": scatterRow(scatterAdd),
  "diff.default(self n dim prepend append)": diff,
  "view_as_complex.default": asComplex,
  "view_as_real.default": asReal,
  "polar.default(abs angle)": polar,
  "complex.default(real imag)": (o) => ({ kind: "complex", re: o.tensor("real"), im: o.tensor("imag") }),
});

/** Ops of inductor's graphs. */
export const primRows: AtenRows = atenRows(
  { "iota.default(length * start step factory)": counted, "convert_element_type.default(self dtype)": convert },
  "torch.ops.prims.",
);

/** The size of an axis, and Python's arithmetic on sizes. */
export const sizeRows: AtenRows = new Map([
  ...atenRows({
    "sym_numel.default": (o) => ({ kind: "size", size: foldProduct(o.tensor("self").extents) }),
    "sym_size.int(self dim)": (o) => ({
      kind: "size",
      size: at(o.tensor("self").extents, axisIn(o.whole("dim"), o.tensor("self").rank)),
    }),
  }),
  ...atenRows(
    {
      "add(a b)": (o) => ({ kind: "size", size: foldAdd(scalarIn(o.size("a")), scalarIn(o.size("b"))) }),
      "sub(a b)": (o) => ({
        kind: "size",
        size: foldAdd(scalarIn(o.size("a")), foldMul(scalarIn(o.size("b")), constant(-1))),
      }),
      "mul(a b)": (o) => ({ kind: "size", size: foldMul(scalarIn(o.size("a")), scalarIn(o.size("b"))) }),
      "floordiv(a b)": (o) => ({ kind: "size", size: foldDiv(scalarIn(o.size("a")), scalarIn(o.size("b"))) }),
      "mod(a b)": (o) => {
        const [a, b] = [scalarIn(o.size("a")), scalarIn(o.size("b"))];
        const isKnown = a.kind === "constant" && b.kind === "constant";
        return { kind: "size", size: isKnown ? constant(a.value % b.value) : binary("mod", a, b) };
      },
    },
    "_operator.",
  ),
]);
