/** Rows of the ops that AOTAutograd's graphs call for gradients, by the rules of Braid's own, and of losses. */
import { gradients } from "../../../ir/api/gradients.ts";
import { logSoftmax } from "../../../ir/api/ops/compositions/softmax.ts";
import { meanOf, perElement } from "../../../ir/api/ops/compositions/statistics.ts";
import { inDType, indicesAlong, wide } from "../../../ir/api/ops/compositions/compose.ts";
import { eq, le, logicalAnd, lt, ne, where } from "../../../ir/api/ops/choices.ts";
import { zeros } from "../../../ir/api/ops/creation.ts";
import { add, div, mul, sub } from "../../../ir/api/ops/elementwise.ts";
import { abs, neg, sigmoid, softplus } from "../../../ir/api/ops/functions.ts";
import { gather, scatterAdd } from "../../../ir/api/ops/indexing.ts";
import { sum } from "../../../ir/api/ops/reductions.ts";
import { unsqueeze } from "../../../ir/api/ops/shape.ts";
import { squeeze } from "../../../ir/api/ops/views.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { logSoftmaxCotangent, normCotangents, softmaxCotangent } from "../../../ir/gradients/compositions.ts";
import { unaryVjps } from "../../../ir/gradients/functions.ts";
import { rowsAt, zerosAround } from "../../../ir/gradients/rules.ts";
import { call } from "../../../ir/ops/call.ts";
import { constantValue } from "../../../ir/scalar/fold.ts";
import { at } from "../../../support/invariant.ts";
import { convolve } from "../../contractions.ts";
import { axisIn, type NodeOperands } from "../operands.ts";
import { requireLastAxis, windowsOf } from "./norms.ts";
import { type AtenRow, type AtenRows, atenRows } from "./row.ts";
import { sliceRangeOf, scalarIn } from "./shape.ts";

type SlopeName = "gelu" | "geluTanh" | "silu" | "tanh" | "sigmoid" | "softplus";

/** The gradient of a function of `of`: its operand, or its result where the rule needs that one. */
function slope(name: (o: NodeOperands) => SlopeName, of: "self" | "output"): AtenRow {
  return (o) => {
    const x = wide(o.tensor(of));
    return unaryVjps[name(o)]?.(wide(o.tensor("grad_output")), { x, y: x }) ?? o.refuse(name(o), "another function");
  };
}

const softplusBackward: AtenRow = (o) =>
  mul(wide(o.tensor("grad_output")), sigmoid(mul(wide(o.tensor("self")), o.number("beta", 1))));

const thresholdBackward: AtenRow = (o) =>
  where(le(o.tensor("self"), o.number("threshold")), 0, o.tensor("grad_output"));

function softmaxBackward(cotangent: typeof softmaxCotangent): AtenRow {
  return (o) => {
    const y = o.tensor("output");
    return cotangent(o.tensor("grad_output"), y, [axisIn(o.whole("dim"), y.rank)]);
  };
}

/** The gradients of the input, the weight and the bias, from the statistics of the forward pass. */
function normBackward(centres: boolean): AtenRow {
  return (o) => {
    requireLastAxis(o);
    const [x, weight, root] = [o.tensor("input"), o.tensorOr("weight"), wide(o.tensor("rstd"))];
    const from = wide(x);
    const normal = (): TensorView => mul(centres ? sub(from, wide(o.tensor("mean"))) : from, root);
    const operands = {
      x,
      ...(weight === null ? {} : { weight }),
      ...(o.has("bias") ? { bias: o.tensor("bias") } : {}),
    };
    const found = normCotangents(operands, o.tensor("grad_out"), { axes: [x.rank - 1], normal, root, centres });
    return [found.x?.() ?? null, found.weight?.() ?? null, found.bias?.() ?? null].slice(0, o.node.outputs.length);
  };
}

const dropoutBackward: AtenRow = (o) => {
  const g = o.tensor("grad_output");
  return mul(mul(g, inDType(o.tensor("mask"), g.dtype)), o.number("scale"));
};

/** Rows at `padding_idx` get nothing: no index is negative. */
const embeddingBackward: AtenRow = (o) => {
  const [g, indices, skipped] = [o.tensor("grad_output"), o.tensor("indices"), o.whole("padding_idx")];
  if (o.flag("scale_grad_by_freq", false)) o.refuse("gradients by frequency", "scale_grad_by_freq=False");
  const places = skipped < 0 ? indices : where(eq(indices, skipped), -1, indices);
  const table = zeros(o.fusion, [o.size("num_weights"), at(g.extents, g.rank - 1)], g.dtype);
  return scatterAdd(table, 0, ...rowsAt(0, places, g));
};

const sliceBackward: AtenRow = (o) => {
  const [g, extents] = [o.tensor("grad_output"), o.sizes("input_sizes")];
  const { axis, start, stop, step } = sliceRangeOf(o, extents);
  return zerosAround(
    g,
    zeros(o.fusion, extents, g.dtype),
    { start: scalarIn(start), stop: scalarIn(stop), step },
    axis,
  );
};

const selectBackward: AtenRow = (o) => {
  const [g, extents] = [o.tensor("grad_output"), o.sizes("input_sizes")];
  const axis = axisIn(o.whole("dim"), extents.length);
  const size = constantValue(scalarIn(at(extents, axis)));
  const index = axisIn(o.whole("index"), size ?? 0);
  const range = { start: scalarIn(index), stop: scalarIn(index + 1) };
  return zerosAround(unsqueeze(g, axis), zeros(o.fusion, extents, g.dtype), range, axis);
};

/** The gradients of images, kernel and bias: those of the forward pass, which itself is not computed. */
const convolutionBackward: AtenRow = (o) => {
  const [g, images, kernel] = [o.tensor("grad_output"), o.tensor("input"), o.tensor("weight")];
  const y = convolve(images, kernel, null, windowsOf(o, images, kernel));
  const [dx = null, dw = null] = gradients(o.fusion, { of: [y], cotangents: [g], wrt: [images, kernel] });
  const others = [...g.extents.keys()].filter((axis) => axis !== 1);
  return [dx, dw, sum(g, others)].slice(0, o.node.outputs.length);
};

/* Losses. A row whose target is `ignore_index` counts for nothing. */

/** As the schema numbers them, and as torch.nn.functional calls them. */
const reductions = ["none", "mean", "sum"] as const;

function reductionOf(o: NodeOperands): (typeof reductions)[number] {
  const word = o.text("reduction", "");
  const found = word === "" ? reductions[o.whole("reduction", 1)] : reductions.find((each) => each === word);
  return found ?? o.refuse("another reduction", reductions.join(", "));
}

interface Targets {
  /** The axis of the classes. */
  readonly axis: number;
  readonly target: TensorView;
  readonly counts: TensorView;
}

function targetsOf(o: NodeOperands, x: TensorView): Targets {
  if (o.has("weight")) o.refuse("a loss with weights of classes", "a loss without weights");
  const target = o.tensor("target");
  return { axis: Math.min(1, x.rank - 1), target, counts: ne(target, o.whole("ignore_index", -100)) };
}

function totalOf(x: TensorView): TensorView {
  return x.rank === 0 ? x : sum(x, [...x.extents.keys()]);
}

/** The loss of log-probabilities, and how many rows count. */
function negativeLogLikelihood(o: NodeOperands, x: TensorView): readonly [loss: TensorView, count: TensorView] {
  const { axis, target, counts } = targetsOf(o, x);
  const picked = squeeze(gather(x, axis, unsqueeze(where(counts, target, 0), axis)), [axis]);
  const losses = where(counts, neg(picked), 0);
  const count = totalOf(inDType(counts, x.dtype));
  const reduction = reductionOf(o);
  if (reduction === "none") return [losses, count];
  const total = totalOf(losses);
  return [reduction === "mean" ? div(total, count) : total, count];
}

const nllBackward: AtenRow = (o) => {
  const [g, x] = [o.tensor("grad_output"), o.tensor("self")];
  const { axis, target, counts } = targetsOf(o, x);
  const share = reductionOf(o) === "mean" ? div(g, o.tensor("total_weight")) : g;
  const place = call("nll_loss_backward");
  const isTarget = eq(indicesAlong(x, axis, place), unsqueeze(target, axis));
  const perRow = share.rank === 0 ? share : unsqueeze(share, axis);
  return where(logicalAnd(isTarget, unsqueeze(counts, axis)), neg(perRow), 0);
};

const crossEntropyRow: AtenRow = (o) => {
  const x = o.tensor("self");
  if (o.number("label_smoothing", 0) !== 0) o.refuse("smoothed labels", "label_smoothing=0");
  return negativeLogLikelihood(o, logSoftmax(x, Math.min(1, x.rank - 1)))[0];
};

function reduced(o: NodeOperands, losses: TensorView): TensorView {
  const reduction = reductionOf(o);
  if (reduction === "none") return losses;
  const axes = [...losses.extents.keys()];
  return reduction === "sum" ? totalOf(losses) : axes.length === 0 ? losses : meanOf(losses, axes);
}

const squaredError: AtenRow = (o) => {
  const distance = sub(o.tensor("self"), o.tensor("target"));
  return reduced(o, mul(distance, distance));
};

function distanceLoss(apply: (distance: TensorView, o: NodeOperands) => TensorView): AtenRow {
  return (o) => reduced(o, apply(abs(sub(wide(o.tensor("self")), wide(o.tensor("target")))), o));
}

/** (1 - t) x + log(1 + exp(-x)) */
const binaryCrossEntropy: AtenRow = (o) => {
  if (o.has("weight") || o.has("pos_weight")) o.refuse("a loss with weights", "a loss without weights");
  const [x, target] = [wide(o.tensor("self")), wide(o.tensor("target"))];
  return reduced(o, add(mul(sub(1, target), x), softplus(neg(x))));
};

const squaredErrorBackward: AtenRow = (o) => {
  const [g, x] = [o.tensor("grad_output"), o.tensor("self")];
  const distance = mul(g, mul(sub(x, o.tensor("target")), 2));
  return reductionOf(o) === "mean" && x.rank > 0 ? perElement(distance, x, [...x.extents.keys()], 0) : distance;
};

export const atenBackwardRows: AtenRows = atenRows({
  "gelu_backward.default(grad_output self * approximate)": slope(
    (o) => (o.text("approximate", "none") === "tanh" ? "geluTanh" : "gelu"),
    "self",
  ),
  "silu_backward.default(grad_output self)": slope(() => "silu", "self"),
  "tanh_backward.default(grad_output output)": slope(() => "tanh", "output"),
  "sigmoid_backward.default(grad_output output)": slope(() => "sigmoid", "output"),
  "softplus_backward.default(grad_output self beta threshold)": softplusBackward,
  "threshold_backward.default(grad_output self threshold)": thresholdBackward,
  "_softmax_backward_data.default(grad_output output dim input_dtype)": softmaxBackward(softmaxCotangent),
  "_log_softmax_backward_data.default(grad_output output dim input_dtype)": softmaxBackward(logSoftmaxCotangent),
  "native_layer_norm_backward.default(grad_out input normalized_shape mean rstd weight bias output_mask)":
    normBackward(true),
  "_fused_rms_norm_backward.default(grad_out input normalized_shape rstd weight output_mask)": normBackward(false),
  "native_dropout_backward.default(grad_output mask scale)": dropoutBackward,
  "embedding_dense_backward.default(grad_output indices num_weights padding_idx scale_grad_by_freq)": embeddingBackward,
  "slice_backward.default(grad_output input_sizes dim start end step)": sliceBackward,
  "select_backward.default(grad_output input_sizes dim index)": selectBackward,
  "convolution_backward.default(grad_output input weight bias_sizes stride padding dilation transposed output_padding groups output_mask)":
    convolutionBackward,
  "nll_loss_forward.default nll_loss2d_forward.default(self target weight reduction ignore_index)": (o) =>
    negativeLogLikelihood(o, o.tensor("self")),
  "nll_loss_backward.default nll_loss2d_backward.default(grad_output self target weight reduction ignore_index total_weight)":
    nllBackward,
  "cross_entropy_loss.default(self target weight reduction ignore_index label_smoothing)": crossEntropyRow,
  "nll_loss_nd.default(self target weight reduction ignore_index)": (o) =>
    negativeLogLikelihood(o, o.tensor("self"))[0],
  "binary_cross_entropy_with_logits.default(self target weight pos_weight reduction)": binaryCrossEntropy,
  "mse_loss.default(self target reduction)": squaredError,
  "l1_loss.default(self target reduction)": distanceLoss((distance) => distance),
  "smooth_l1_loss.default(self target reduction beta)": distanceLoss((distance, o) => {
    const beta = o.number("beta", 1);
    const square = mul(mul(distance, distance), 0.5 / beta);
    return beta === 0 ? distance : where(lt(distance, beta), square, sub(distance, beta / 2));
  }),
  "huber_loss.default(self target reduction delta)": distanceLoss((distance, o) => {
    const delta = o.number("delta", 1);
    const line = mul(sub(distance, delta / 2), delta);
    return where(le(distance, delta), mul(mul(distance, distance), 0.5), line);
  }),
  "mse_loss_backward.default(grad_output self target reduction)": squaredErrorBackward,
});
