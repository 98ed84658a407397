/** The ops of nvFuser's FusionDefinition, one row each: the names of its parameters and what it makes. */
import * as ops from "../../ir/api/ops.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { at } from "../../support/invariant.ts";
import { alongAxis, broadcastTo, raised, withAxes } from "../views.ts";
import { constantValue, foldAdd, sameScalar } from "../../ir/scalar/fold.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { dtypes } from "../../numerics/dtype.ts";
import {
  argument,
  type FusionCall,
  fusionDType,
  extentsIn,
  flagIn,
  invalidCall,
  isGiven,
  none,
  fusionNumber,
  fusionList,
  fusionNumbers,
  scalarNumber,
  tensorIn,
  tensorsIn,
  refuseCall,
  type FusionOpRow,
  madeBy,
  sizeValue,
  tensorRow,
  tensorValue,
} from "./value.ts";
import { fusionElementwiseRows } from "./elementwise.ts";
import { asDType, promotedDType } from "./promotion.ts";
import { elementCount } from "../../numerics/tensor/host-tensor.ts";

/** `counts`: integers and bools are added in int64. */
function reduction(
  make: (tensor: TensorView, axes: readonly number[]) => TensorView,
  { counts = false } = {},
): FusionOpRow {
  return {
    parameters: ["arg", "dims", "keepdim", "dtype", "dim"],
    make: (call) => {
      const given = tensorIn(call, "arg");
      const isCounted = counts && dtypes[given.dtype].family !== "float";
      const tensor = asDType(given, fusionDType(call) ?? (isCounted ? "int64" : given.dtype));
      return tensorValue(kept(call, tensor, make(tensor, axesIn(call, tensor))));
    },
  };
}

/** From 0 on. Where there are none, all. */
function axesIn(call: FusionCall, { rank }: TensorView): readonly number[] {
  const given = ["dims", "dim"].find((parameter) => isGiven(call, parameter));
  if (given === undefined) return Array.from({ length: rank }, (_, axis) => axis);
  return fusionNumbers(call, given).map((axis) => (axis < 0 ? axis + rank : axis));
}

/** With axes of extent 1 where `keepdim` asks for them. */
function kept(call: FusionCall, from: TensorView, reduced: TensorView): TensorView {
  if (!flagIn(call, "keepdim", false)) return reduced;
  const axes = new Set(axesIn(call, from));
  return broadcastTo(reduced, from.rank, (axis) => axes.has(axis));
}

/** `shape` may keep an extent with -1, or repeat that of the tensor. */
function expanded(tensor: TensorView, shape: readonly (number | TensorView["extents"][number])[]): TensorView {
  const target = tensor.extents.map((own, axis) => {
    const extent = at(shape, axis);
    const isOne = own.kind === "constant" && own.value === 1;
    return isOne && extent !== -1 ? extent : own;
  });
  const isSame = target.every((extent, axis) => extent === tensor.extents[axis] || extent === 1);
  return isSame ? tensor : ops.expand(tensor, target);
}

function momentsOf(call: FusionCall, correction = fusionNumber(call, "correction", 1)): ops.Moments {
  const given = tensorIn(call, "arg");
  const tensor = asDType(given, promotedDType([given]));
  const { variance, mean } = ops.varMean(tensor, axesIn(call, tensor), correction);
  return { variance: kept(call, tensor, variance), mean: kept(call, tensor, mean) };
}

function requireRank(call: FusionCall, found: number, expected: number): void {
  if (found === expected) return;
  invalidCall(call, `${call.name} has another rank`, `${found} axes`, `${expected} axes`);
}

function refuseGiven(call: FusionCall, parameter: string, help: string): void {
  if (!isGiven(call, parameter)) return;
  refuseCall(call, `${call.name} with ${parameter} is not supported`, `no ${parameter}`, help);
}

/** Element numbers below 0 stand for what is left. */
function shapeOf(
  call: FusionCall,
  tensor: TensorView,
  parameter: string,
): readonly (number | TensorView["extents"][number])[] {
  const shape = extentsIn(call, parameter);
  if (!shape.includes(-1)) return shape;
  const sizes = tensor.extents.map((extent) => (extent.kind === "constant" ? extent.value : Number.NaN));
  const rest = shape.reduce<number>(
    (left, each) => (typeof each === "number" ? left / Math.abs(each) : Number.NaN),
    elementCount(sizes),
  );
  if (Number.isInteger(rest)) return shape.map((each) => (each === -1 ? rest : each));
  return refuseCall(
    call,
    "the size that -1 stands for is not known",
    "constant sizes beside it",
    "write the size, or take it from fd.ops.size",
  );
}

/** Of indices that may have fewer places on the other axes. */
const gather = tensorRow(["arg", "index", "dim"], (call) => {
  const [tensor, index] = [tensorIn(call, "arg"), tensorIn(call, "index")];
  const dim = fusionNumber(call, "dim");
  requireRank(call, index.rank, tensor.rank);
  const stops = tensor.extents.map((extent, axis) =>
    axis !== dim && axis !== dim + tensor.rank && !sameScalar(extent, at(index.extents, axis))
      ? at(index.extents, axis)
      : extent,
  );
  const isWhole = stops.every((stop, axis) => stop === tensor.extents[axis]);
  const starts = stops.map(() => 0);
  return ops.gather(isWhole ? tensor : ops.slice(tensor, starts, stops), dim, index);
});

type Bound = ReturnType<typeof extentsIn>[number];

/** As in Python: negative numbers count from the end, and no range is longer than its axis. */
function rangeIn(extent: TensorView["extents"][number], start: Bound, stop: Bound): readonly [Bound, Bound] {
  const size = constantValue(extent);
  const placed = (bound: Bound): Bound => {
    if (typeof bound !== "number") return bound;
    if (size === null) return bound < 0 ? foldAdd(extent, constant(bound)) : bound;
    return Math.min(Math.max(bound < 0 ? bound + size : bound, 0), size);
  };
  const [from, to] = [placed(start), placed(stop)];
  return [from, typeof from === "number" && typeof to === "number" ? Math.max(from, to) : to];
}

function notPadded(call: FusionCall): never {
  return invalidCall(call, "cat with manual_padding has an operand that is not padded", "another tensor", "fd.ops.pad");
}

const opRows: Readonly<Record<string, FusionOpRow>> = {
  ...fusionElementwiseRows,

  sum: reduction(ops.sum, { counts: true }),
  prod: reduction(ops.prod, { counts: true }),
  max: reduction(ops.amax),
  min: reduction(ops.amin),
  var: madeBy(["arg", "dims", "correction", "keepdim"], (call) => tensorValue(momentsOf(call).variance)),
  var_mean: madeBy(["arg", "dims", "correction", "keepdim"], (call) => {
    const { variance, mean } = momentsOf(call);
    return { kind: "list", items: [tensorValue(variance), tensorValue(mean)] };
  }),
  // As print(fd) has var_mean: the mean, the sum of squared distances from it, and how many there are.
  welford: madeBy(["arg", "dims"], (call) => {
    const tensor = tensorIn(call, "arg");
    const { variance, mean } = momentsOf(call, 0);
    const count = axesIn(call, tensor)
      .map((axis) => constantValue(at(tensor.extents, axis)) ?? Number.NaN)
      .reduce((all, extent) => all * extent, 1);
    if (Number.isNaN(count))
      return refuseCall(call, "welford over an axis whose size a run gives", "constant sizes", "write the sizes");
    const items = [tensorValue(mean), tensorValue(ops.mul(variance, count)), { kind: "number", value: count } as const];
    return { kind: "list", items };
  }),

  broadcast: tensorRow(["arg", "is_broadcast_dim"], (call) => {
    const flags = fusionList(call, "is_broadcast_dim").map((each) => each.kind === "bool" && each.value);
    return ops.broadcast(tensorIn(call, "arg"), flags);
  }),
  broadcast_in_dim: tensorRow(["arg", "shape", "broadcast_dims"], (call) => {
    const tensor = tensorIn(call, "arg");
    const [shape, axes] = [extentsIn(call, "shape"), fusionNumbers(call, "broadcast_dims")];
    requireRank(call, axes.length, tensor.rank);
    const isNew = shape.map((_, axis) => !axes.includes(axis));
    return expanded(ops.broadcast(tensor, isNew), shape);
  }),
  expand: tensorRow(["arg", "shape"], (call) => {
    const [given, shape] = [tensorIn(call, "arg"), extentsIn(call, "shape")];
    const tensor = withAxes(given, 0, Math.max(shape.length - given.rank, 0));
    requireRank(call, shape.length, tensor.rank);
    const result = expanded(tensor, shape);
    // The result may be placed otherwise than the operand.
    return result === given ? ops.set(given) : result;
  }),
  squeeze: tensorRow(["arg", "dims", "squeeze_expanded"], (call) =>
    ops.squeeze(tensorIn(call, "arg"), fusionNumbers(call, "dims")),
  ),
  reshape: tensorRow(["arg", "new_shape"], (call) => {
    const tensor = tensorIn(call, "arg");
    return ops.reshape(tensor, shapeOf(call, tensor, "new_shape"));
  }),
  permute: tensorRow(["arg", "dims"], (call) => ops.permute(tensorIn(call, "arg"), fusionNumbers(call, "dims"))),
  slice: tensorRow(["arg", "start_indices", "end_indices", "strides", "manual_normalization"], (call) => {
    const tensor = tensorIn(call, "arg");
    const [starts, stops] = [extentsIn(call, "start_indices"), extentsIn(call, "end_indices")];
    requireRank(call, starts.length, tensor.rank);
    requireRank(call, stops.length, tensor.rank);
    const ranges = tensor.extents.map((extent, axis) => rangeIn(extent, at(starts, axis), at(stops, axis)));
    return ops.slice(
      tensor,
      ranges.map(([start]) => start),
      ranges.map(([, stop]) => stop),
      isGiven(call, "strides") ? fusionNumbers(call, "strides") : undefined,
    );
  }),
  cat: tensorRow(["tensors", "dim", "manual_padding"], (call) => {
    const tensors = tensorsIn(call, "tensors");
    // print(fd) pads each operand to the size of the result first.
    const isPadded = flagIn(call, "manual_padding", false) && tensors.length > 1;
    const parts = tensors.map((each) => (isPadded ? call.definition.padded.get(each.id) : each) ?? notPadded(call));
    return ops.cat(parts, fusionNumber(call, "dim", 0));
  }),
  pad: tensorRow(["arg", "pad_widths", "value"], (call) => {
    const tensor = tensorIn(call, "arg");
    const widths = fusionNumbers(call, "pad_widths");
    // As torch.nn.functional.pad: the last axis comes first.
    const pairs = tensor.extents.map((_, axis) => {
      const place = 2 * (tensor.rank - 1 - axis);
      return [widths[place] ?? 0, widths[place + 1] ?? 0] as const;
    });
    const result = ops.pad(tensor, pairs, scalarNumber(call, "value", 0));
    call.definition.padded.set(result.id, tensor);
    return result;
  }),
  stride_order: tensorRow(["arg", "stride_order"], (call) => inStrideOrder(call, ops.set(tensorIn(call, "arg")))),

  matmul: tensorRow(["arg1", "arg2"], (call) => ops.matmul(tensorIn(call, "arg1"), tensorIn(call, "arg2"))),
  linear: tensorRow(["arg1", "arg2", "bias"], (call) =>
    ops.linear(
      tensorIn(call, "arg1"),
      tensorIn(call, "arg2"),
      isGiven(call, "bias") ? tensorIn(call, "bias") : undefined,
    ),
  ),
  sdpfa_fwd: madeBy(["query", "key", "value", "bias", "mask", "dropout_p", "is_causal", "scale"], (call) => {
    refuseGiven(call, "bias", "add the bias to the scores before a softmax of its own");
    refuseGiven(call, "mask", "write the mask as a where before a softmax of its own");
    if (fusionNumber(call, "dropout_p", 0) !== 0) refuseGiven(call, "dropout_p", "leave out the dropout");
    const { output, logsumexp } = ops.sdpa(tensorIn(call, "query"), tensorIn(call, "key"), tensorIn(call, "value"), {
      ...(flagIn(call, "is_causal", false) ? { causal: "topLeft" } : {}),
      ...(isGiven(call, "scale") ? { scale: fusionNumber(call, "scale") } : {}),
    });
    // A seed and an offset follow, which are of dropout.
    return { kind: "list", items: [tensorValue(output), tensorValue(logsumexp), none, none] };
  }),

  full: tensorRow(["shape", "fill_value", "dtype"], (call) =>
    ops.full(
      call.definition.fusion,
      extentsIn(call, "shape"),
      scalarNumber(call, "fill_value"),
      fusionDType(call) ?? "float",
    ),
  ),
  iota: tensorRow(["length", "start", "step", "dtype"], (call) => {
    const dtype = fusionDType(call) ?? "int64";
    const [start, step] = [fusionNumber(call, "start", 0), fusionNumber(call, "step", 1)];
    const { fusion } = call.definition;
    const given = argument(call, "length");
    const length = given.kind === "extent" ? given.extent : fusionNumber(call, "length");
    if (dtypes[dtype].family !== "float") return ops.iota(fusion, length, { start, step, dtype });
    const places = ops.cast(ops.iota(fusion, length, { dtype: "int64" }), dtype === "double" ? "double" : "float");
    return asDType(ops.add(ops.mul(places, step), start), dtype);
  }),
  select: tensorRow(["arg", "index", "dim"], (call) =>
    ops.select(tensorIn(call, "arg"), fusionNumber(call, "dim"), fusionNumber(call, "index")),
  ),
  index_select: tensorRow(["arg", "index", "dim"], (call) =>
    ops.indexSelect(tensorIn(call, "arg"), fusionNumber(call, "dim"), tensorIn(call, "index")),
  ),
  gather,
  take_along_axis: gather,
  argsort: tensorRow(["arg", "dim", "descending", "stable"], (call) => {
    const options = { descending: flagIn(call, "descending", false) };
    return ops.argsort(tensorIn(call, "arg"), fusionNumber(call, "dim"), options);
  }),
  topk: madeBy(["arg", "k", "dim", "largest", "sorted"], (call) => {
    const [axis, k] = [fusionNumber(call, "dim", -1), fusionNumber(call, "k")];
    const { values, indices } = ops.topk(tensorIn(call, "arg"), k, axis, { largest: flagIn(call, "largest", true) });
    return { kind: "list", items: [tensorValue(values), tensorValue(indices)] };
  }),
  triu: tensorRow(["arg", "diagonal"], (call) => {
    const tensor = tensorIn(call, "arg");
    const { fusion } = call.definition;
    if (tensor.rank < 2) requireRank(call, tensor.rank, 2);
    const [rows, columns] = [-2, -1].map((axis) => ops.iota(fusion, tensor.extents.at(axis) ?? 0));
    const shifted = ops.sub(columns ?? 0, fusionNumber(call, "diagonal", 0));
    const isKept = ops.le(alongAxis(rows ?? shifted, 0, 2), alongAxis(shifted, 1, 2));
    return asDType(ops.where(raised(isKept, tensor.rank), tensor, 0), tensor.dtype);
  }),
  cumsum: tensorRow(["arg", "dim"], (call) => ops.cumsum(tensorIn(call, "arg"), fusionNumber(call, "dim"))),
  embedding_fwd: tensorRow(
    ["input", "weight", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse"],
    (call) => {
      refuseGiven(call, "max_norm", "leave max_norm out");
      return ops.embedding(tensorIn(call, "weight"), tensorIn(call, "input"));
    },
  ),
  size: madeBy(["arg", "dim"], (call) => {
    const { extents } = tensorIn(call, "arg");
    const axis = fusionNumber(call, "dim");
    const extent = extents.at(axis);
    if (extent !== undefined) return sizeValue(extent);
    return invalidCall(call, "the tensor has no such axis", String(axis), `an axis of ${extents.length}`);
  }),
  shape: madeBy(["arg"], (call) => ({ kind: "list", items: tensorIn(call, "arg").extents.map(sizeValue) })),
};

/** By name: `add` of `fd.ops.add`. */
export function opRow(name: string): FusionOpRow | undefined {
  return Object.hasOwn(opRows, name) ? opRows[name] : undefined;
}

export const opNames: readonly string[] = Object.keys(opRows).toSorted();

/** `stride_order[i]` says how many axes are inside of axis i in memory. */
export function inStrideOrder(call: FusionCall, tensor: TensorView): TensorView {
  const order = fusionNumbers(call, "stride_order");
  requireRank(call, order.length, tensor.rank);
  const outermostFirst = order.map((_, axis) => axis).toSorted((a, b) => at(order, b) - at(order, a));
  return outermostFirst.every((axis, i) => axis === i) ? tensor : tensor.setAllocationDomain(outermostFirst);
}
