/** Rows of convolutions and norms. */
import { keepAxes } from "../../../ir/api/ops/compositions/compose.ts";
import { layerNorm, rmsNorm } from "../../../ir/api/ops/compositions/norms.ts";
import { add, div, mul } from "../../../ir/api/ops/elementwise.ts";
import { neg, rsqrt, sqrt } from "../../../ir/api/ops/functions.ts";
import { sum } from "../../../ir/api/ops/reductions.ts";
import { reshape, squeeze } from "../../../ir/api/ops/views.ts";
import { fusionState } from "../../../ir/api/handle.ts";
import { TensorView } from "../../../ir/api/tensor-view.ts";
import { constantValue, foldCeilDiv, foldProduct } from "../../../ir/scalar/fold.ts";
import { constant } from "../../../ir/scalar/scalar.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { convolve, type Windows } from "../../contractions.ts";
import { alongAxis, withAxes } from "../../views.ts";
import { axisIn, type NodeOperands } from "../operands.ts";
import { type AtenRow, type AtenRows, atenRows, type RowResult } from "./row.ts";

const convolution: AtenRow = (o) => {
  const [given, weight] = [o.tensor("input"), o.tensor("weight")];
  // One image, without an axis for several.
  const isSingle = given.rank === weight.rank - 1;
  const x = isSingle ? withAxes(given, 0, 1) : given;
  const y = convolve(x, weight, o.tensorOr("bias"), windowsOf(o, x, weight));
  return isSingle ? squeeze(y, [0]) : y;
};

/** Throws `model-unsupported` for a transposed convolution, and for extents that are not known. */
export function windowsOf(o: NodeOperands, x: TensorView, weight: TensorView): Windows {
  const kernel = weight.extents.slice(2).map(constantValue);
  const every = (name: string, fallback: number): readonly number[] => {
    const list = o.wholes(name, [fallback]);
    return kernel.map((_, i) => list[i] ?? at(list, 0));
  };
  if (o.flag("transposed", false)) return o.refuse("a transposed convolution", "a convolution");
  const sizes = [...x.extents.slice(2), ...weight.extents].map(constantValue);
  if (sizes.includes(null) || x.rank !== weight.rank) {
    return o.refuse("a convolution of sizes that export left open", "sizes of images that are numbers");
  }
  const dilation = every("dilation", 1);
  const word = o.text("padding", "");
  const padding = kernel.map((size, i): readonly [number, number] => {
    if (word === "") return [at(every("padding", 0), i), at(every("padding", 0), i)];
    const reach = word === "same" ? at(dilation, i) * ((size ?? 1) - 1) : 0;
    return [Math.floor(reach / 2), Math.ceil(reach / 2)];
  });
  return { stride: every("stride", 1), padding, dilation, groups: o.whole("groups", 1) };
}

/** The norms of Braid are over the last axis. */
export function requireLastAxis(o: NodeOperands): void {
  if (o.sizes("normalized_shape").length !== 1) o.refuse("a norm over several axes", "a norm over the last axis");
}

const layerNormRow: AtenRow = (o) => {
  requireLastAxis(o);
  const y = layerNorm(o.tensor("input"), o.tensorOr("weight"), o.tensorOr("bias"), o.number("eps", 1e-5));
  return withStatistics(o, y);
};

/** The norm, with what it keeps of each row for its gradient where the node has further results. */
function withStatistics({ node, fusion }: NodeOperands, y: TensorView): RowResult {
  if (node.outputs.length === 1) return y;
  const builder = fusion[fusionState];
  const { kept = [] } = builder.markers.findLast(({ outputs }) => outputs.includes(y.id)) ?? {};
  return [y, ...kept.map((id) => withAxes(new TensorView({ builder, id }), y.rank - 1, 1))];
}

/** Each channel, axis 1, times a scale and with an offset. */
function onChannels(x: TensorView, scale: TensorView | null, offset: TensorView | null): TensorView {
  const scaled = scale === null ? x : mul(x, alongAxis(scale, 1, x.rank));
  return offset === null ? scaled : add(scaled, alongAxis(offset, 1, x.rank));
}

/** With the statistics of training, which are constants: of each channel. */
const batchNorm: AtenRow = (o) => {
  if (o.flag("training", false)) return o.refuse("batch norm in training", "a model in eval mode");
  const [x, mean, variance] = [o.tensor("input"), o.tensor("running_mean"), o.tensor("running_var")];
  const deviation = rsqrt(add(variance, o.number("eps", 1e-5)));
  const normal = onChannels(onChannels(x, null, neg(mean)), deviation, null);
  return firstOf(o, onChannels(normal, o.tensorOr("weight"), o.tensorOr("bias")));
};

const groupNorm: AtenRow = (o) => {
  const x = o.tensor("input");
  const groups = o.whole(o.has("group") ? "group" : "num_groups");
  const rest = foldProduct([at(x.extents, 1), ...x.extents.slice(2)]);
  const length = foldCeilDiv(rest, constant(groups));
  const rows = reshape(x, [at(x.extents, 0), groups, length]);
  const normal = reshape(layerNorm(rows, null, null, o.number("eps", 1e-5)), x.extents);
  return firstOf(o, onChannels(normal, o.tensorOr("weight"), o.tensorOr("bias")));
};

/** The first result of a node; the further ones, what it keeps for its gradient, are not computed. */
function firstOf({ node }: NodeOperands, y: TensorView): RowResult {
  return node.outputs.map((_, i) => (i === 0 ? y : null));
}

/** Without eps it is the spacing of the dtype at 1, as in PyTorch. */
const rmsNormRow: AtenRow = (o) => {
  requireLastAxis(o);
  const x = o.tensor("input");
  return withStatistics(o, rmsNorm(x, o.tensorOr("weight"), o.number("eps", 2 * dtypes[x.dtype].epsilon)));
};

export const normRows: AtenRows = atenRows({
  "conv1d.default conv2d.default conv3d.default(input weight bias stride padding dilation groups)": convolution,
  "conv1d.padding conv2d.padding conv3d.padding(input weight bias stride padding dilation groups)": convolution,
  "convolution.default(input weight bias stride padding dilation transposed output_padding groups)": convolution,
  "layer_norm.default native_layer_norm.default(input normalized_shape weight bias eps cudnn_enable)": layerNormRow,
  "rms_norm.default _fused_rms_norm.default(input normalized_shape weight eps)": rmsNormRow,
  "_weight_norm.default(v g dim) _weight_norm_interface.default(v g dim)": (o) => {
    const [v, g] = [o.tensor("v"), o.tensor("g")];
    const own = axisIn(o.whole("dim", 0), v.rank);
    const axes = [...v.extents.keys()].filter((axis) => axis !== own);
    const norm = keepAxes(sqrt(sum(mul(v, v), axes)), axes, v);
    return firstOf(o, mul(v, div(g, norm)));
  },
  "batch_norm.default(input weight bias running_mean running_var training momentum eps cudnn_enabled)": batchNorm,
  "_native_batch_norm_legit_no_training.default(input weight bias running_mean running_var momentum eps)": batchNorm,
  "group_norm.default(input num_groups weight bias eps cudnn_enabled)": groupNorm,
  "native_group_norm.default(input weight bias N C HxW group eps)": groupNorm,
});
