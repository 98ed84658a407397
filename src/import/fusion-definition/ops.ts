/** The ops of nvFuser's FusionDefinition, one row each: the names of its parameters and what it makes. */
import * as ops from "../../ir/api/ops.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { at } from "../../support/invariant.ts";
import { sameComparisons, sameExtremes, sameUnaries } from "../same-names.ts";
import { broadcastTo } from "../views.ts";
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
  operandIn,
  tensorIn,
  tensorsIn,
  refuseCall,
  type FusionValue,
} from "./value.ts";
import { elementCount } from "../../numerics/tensor/host-tensor.ts";

export interface FusionOpRow {
  readonly parameters: readonly string[];
  readonly make: (call: FusionCall) => FusionValue;
}

function valueOf(tensor: TensorView): FusionValue {
  return { kind: "tensor", tensor };
}

function sizeValue(extent: TensorView["extents"][number]): FusionValue {
  return extent.kind === "constant" ? { kind: "number", value: extent.value } : { kind: "extent", extent };
}

export function madeBy(parameters: readonly string[], make: FusionOpRow["make"]): FusionOpRow {
  return { parameters, make };
}

/** A row that makes one tensor. */
function row(parameters: readonly string[], make: (call: FusionCall) => TensorView): FusionOpRow {
  return { parameters, make: (call) => valueOf(make(call)) };
}

/** Of a scalar, `number` makes one. */
function unary(make: (tensor: TensorView) => TensorView, number?: (x: number) => number): FusionOpRow {
  return madeBy(["x"], (call) => {
    const x = argument(call, "x");
    const isNumber = x.kind === "number" && number !== undefined;
    return isNumber ? { kind: "number", value: number(x.value) } : valueOf(make(tensorIn(call, "x")));
  });
}

/** Of two scalars, `number` makes one. */
function binary(
  make: (a: TensorView | number, b: TensorView | number) => TensorView,
  number?: (a: number, b: number) => number,
): FusionOpRow {
  return madeBy(["a", "b"], (call) => {
    const [a, b] = [operandIn(call, "a"), operandIn(call, "b")];
    const areNumbers = typeof a === "number" && typeof b === "number" && number !== undefined;
    return areNumbers ? { kind: "number", value: number(a, b) } : valueOf(make(a, b));
  });
}

function logical(make: (a: TensorView, b: TensorView) => TensorView): FusionOpRow {
  return row(["a", "b"], (call) => make(tensorIn(call, "a"), tensorIn(call, "b")));
}

function reduction(make: (tensor: TensorView, axes: readonly number[]) => TensorView): FusionOpRow {
  return {
    parameters: ["arg", "dims", "keepdim", "dtype"],
    make: (call) => {
      const given = tensorIn(call, "arg");
      const dtype = fusionDType(call);
      const tensor = dtype === null || dtype === given.dtype ? given : ops.cast(given, dtype);
      return valueOf(kept(call, tensor, make(tensor, axesIn(call, tensor))));
    },
  };
}

/** From 0 on. Where there are none, all. */
function axesIn(call: FusionCall, { rank }: TensorView): readonly number[] {
  if (!isGiven(call, "dims")) return Array.from({ length: rank }, (_, axis) => axis);
  return fusionNumbers(call, "dims").map((axis) => (axis < 0 ? axis + rank : axis));
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

const gather = row(["arg", "index", "dim"], (call) =>
  ops.gather(tensorIn(call, "arg"), fusionNumber(call, "dim"), tensorIn(call, "index")),
);

const opRows: Readonly<Record<string, FusionOpRow>> = {
  ...Object.fromEntries(sameUnaries.map(([name, make]) => [name, unary(make)])),
  ...Object.fromEntries([...sameComparisons, ...sameExtremes].map(([name, make]) => [name, binary(make)])),
  isfinite: unary(ops.isfinite),
  isinf: unary(ops.isinf),
  isnan: unary(ops.isnan),
  logical_not: unary(ops.logicalNot),
  neg: unary(ops.neg, (x) => -x),
  reciprocal: unary(ops.reciprocal, (x) => 1 / x),
  set: unary(ops.set),
  segment_set: unary(ops.set),
  silu: unary(ops.silu),
  erfc: unary(ops.erfc),
  atan2: binary(ops.atan2),
  fmod: binary(ops.fmod),
  sqrt: unary(ops.sqrt, Math.sqrt),

  add: binary(ops.add, (a, b) => a + b),
  sub: binary(ops.sub, (a, b) => a - b),
  mul: binary(ops.mul, (a, b) => a * b),
  div: binary(ops.div),
  truediv: binary(ops.div, (a, b) => a / b),
  pow: binary(ops.pow),
  remainder: binary(ops.remainder),
  bitwise_and: binary(ops.bitAnd),
  bitwise_or: binary(ops.bitOr),
  bitwise_xor: binary(ops.bitXor),
  logical_and: logical(ops.logicalAnd),
  logical_or: logical(ops.logicalOr),
  logical_xor: logical(ops.logicalXor),
  where: row(["condition", "a", "b"], (call) =>
    ops.where(tensorIn(call, "condition"), operandIn(call, "a"), operandIn(call, "b")),
  ),
  cast: row(["arg", "dtype"], (call) => {
    const tensor = tensorIn(call, "arg");
    return ops.cast(tensor, fusionDType(call) ?? tensor.dtype);
  }),

  sum: reduction(ops.sum),
  prod: reduction(ops.prod),
  max: reduction(ops.amax),
  min: reduction(ops.amin),
  var: row(["arg", "dims", "correction", "keepdim"], (call) => {
    const tensor = tensorIn(call, "arg");
    const { variance } = ops.varMean(tensor, axesIn(call, tensor), fusionNumber(call, "correction", 1));
    return kept(call, tensor, variance);
  }),
  var_mean: madeBy(["arg", "dims", "correction", "keepdim"], (call) => {
    const tensor = tensorIn(call, "arg");
    const { variance, mean } = ops.varMean(tensor, axesIn(call, tensor), fusionNumber(call, "correction", 1));
    return { kind: "list", items: [variance, mean].map((each) => valueOf(kept(call, tensor, each))) };
  }),

  broadcast: row(["arg", "is_broadcast_dim"], (call) => {
    const flags = fusionList(call, "is_broadcast_dim").map((each) => each.kind === "bool" && each.value);
    return ops.broadcast(tensorIn(call, "arg"), flags);
  }),
  broadcast_in_dim: row(["arg", "shape", "broadcast_dims"], (call) => {
    const tensor = tensorIn(call, "arg");
    const [shape, axes] = [extentsIn(call, "shape"), fusionNumbers(call, "broadcast_dims")];
    requireRank(call, axes.length, tensor.rank);
    const isNew = shape.map((_, axis) => !axes.includes(axis));
    return expanded(ops.broadcast(tensor, isNew), shape);
  }),
  expand: row(["arg", "shape"], (call) => {
    const [tensor, shape] = [tensorIn(call, "arg"), extentsIn(call, "shape")];
    requireRank(call, shape.length, tensor.rank);
    return expanded(tensor, shape);
  }),
  squeeze: row(["arg", "dims", "squeeze_expanded"], (call) =>
    ops.squeeze(tensorIn(call, "arg"), fusionNumbers(call, "dims")),
  ),
  reshape: row(["arg", "new_shape"], (call) => {
    const tensor = tensorIn(call, "arg");
    return ops.reshape(tensor, shapeOf(call, tensor, "new_shape"));
  }),
  permute: row(["arg", "dims"], (call) => ops.permute(tensorIn(call, "arg"), fusionNumbers(call, "dims"))),
  slice: row(["arg", "start_indices", "end_indices", "strides", "manual_normalization"], (call) =>
    ops.slice(
      tensorIn(call, "arg"),
      extentsIn(call, "start_indices"),
      extentsIn(call, "end_indices"),
      isGiven(call, "strides") ? fusionNumbers(call, "strides") : undefined,
    ),
  ),
  cat: row(["tensors", "dim", "manual_padding"], (call) =>
    ops.cat(tensorsIn(call, "tensors"), fusionNumber(call, "dim", 0)),
  ),
  pad: row(["arg", "pad_widths", "value"], (call) => {
    const tensor = tensorIn(call, "arg");
    const widths = fusionNumbers(call, "pad_widths");
    // As torch.nn.functional.pad: the last axis comes first.
    const pairs = tensor.extents.map((_, axis) => {
      const place = 2 * (tensor.rank - 1 - axis);
      return [widths[place] ?? 0, widths[place + 1] ?? 0] as const;
    });
    return ops.pad(tensor, pairs, fusionNumber(call, "value", 0));
  }),
  stride_order: row(["arg", "stride_order"], (call) => inStrideOrder(call, ops.set(tensorIn(call, "arg")))),

  matmul: row(["a", "b"], (call) => ops.matmul(tensorIn(call, "a"), tensorIn(call, "b"))),
  linear: row(["arg", "weight", "bias"], (call) =>
    ops.linear(
      tensorIn(call, "arg"),
      tensorIn(call, "weight"),
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
    return { kind: "list", items: [valueOf(output), valueOf(logsumexp), none, none] };
  }),

  full: row(["shape", "fill_value", "dtype"], (call) =>
    ops.full(
      call.definition.fusion,
      extentsIn(call, "shape"),
      fusionNumber(call, "fill_value"),
      fusionDType(call) ?? "float",
    ),
  ),
  iota: row(["length", "start", "step", "dtype"], (call) => {
    const dtype = fusionDType(call) ?? "int64";
    const [start, step] = [fusionNumber(call, "start", 0), fusionNumber(call, "step", 1)];
    return ops.iota(call.definition.fusion, fusionNumber(call, "length"), { start, step, dtype });
  }),
  select: row(["arg", "index", "dim"], (call) =>
    ops.select(tensorIn(call, "arg"), fusionNumber(call, "dim"), fusionNumber(call, "index")),
  ),
  index_select: row(["arg", "index", "dim"], (call) =>
    ops.indexSelect(tensorIn(call, "arg"), fusionNumber(call, "dim"), tensorIn(call, "index")),
  ),
  gather,
  take_along_axis: gather,
  argsort: row(["arg", "dim", "descending", "stable"], (call) => {
    const options = { descending: flagIn(call, "descending", false) };
    return ops.argsort(tensorIn(call, "arg"), fusionNumber(call, "dim"), options);
  }),
  topk: madeBy(["arg", "k", "dim", "largest", "sorted"], (call) => {
    const [axis, k] = [fusionNumber(call, "dim", -1), fusionNumber(call, "k")];
    const { values, indices } = ops.topk(tensorIn(call, "arg"), k, axis, { largest: flagIn(call, "largest", true) });
    return { kind: "list", items: [valueOf(values), valueOf(indices)] };
  }),
  cumsum: row(["arg", "dim"], (call) => ops.cumsum(tensorIn(call, "arg"), fusionNumber(call, "dim"))),
  embedding_fwd: row(
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
