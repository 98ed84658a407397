/** Rows of ATen's attention, forward and backward: the one that models call, and those of its kernels. */
import { sdpa, sdpaBackward, type SdpaMask, type SdpaOptions, type SdpaResult } from "../../../ir/api/ops/attention.ts";
import { logicalAnd } from "../../../ir/api/ops/choices.ts";
import { addedMask } from "../../../ir/api/ops/compositions/attention.ts";
import { full } from "../../../ir/api/ops/creation.ts";
import { pad } from "../../../ir/api/ops/shape.ts";
import { reshape, slice } from "../../../ir/api/ops/views.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { constantValue, extentsDiffer } from "../../../ir/scalar/fold.ts";
import { at } from "../../../support/invariant.ts";
import { raised, withAxes } from "../../views.ts";
import type { Size } from "../graph.ts";
import type { NodeOperands } from "../operands.ts";
import { type AtenRow, type AtenRows, atenRows } from "./row.ts";

type Heads = readonly [q: TensorView, k: TensorView, v: TensorView];

/**
 * How queries see keys. A mask that is known by its form is none. Throws `model-unsupported` for dropout, and for a mask
 * of an attention that is causal as well.
 */
function seenBy(o: NodeOperands, q: TensorView): SdpaOptions & SdpaMask {
  if (o.number("dropout_p", 0) !== 0) o.refuse("attention with dropout", "a model in eval mode");
  const scale = o.numberOr("scale");
  const bias = o.has("attn_mask") ? "attn_mask" : o.has("attn_bias") ? "attn_bias" : null;
  const known = bias === null ? null : o.maskOf(bias);
  const { causal, window } = known?.seen ?? { causal: null, window: null };
  const rest = known?.rest ?? [];
  const isCausal = o.flag("is_causal", false);
  if (isCausal && (rest.length > 0 || causal === "bottomRight")) {
    o.refuse("a mask of an attention that is causal as well", "one of both");
  }
  return {
    causal: isCausal ? "topLeft" : causal,
    window,
    ...(scale === null ? {} : { scale }),
    ...(rest.length === 0 ? {} : { mask: maskOf(o, rest, q) }),
  };
}

/** What is added to the scores: once for all layers. */
function maskOf(o: NodeOperands, names: readonly string[], q: TensorView): TensorView {
  const { masks } = o.building;
  const key = [...names, q.dtype, q.rank].join(" ");
  const parts = (): readonly TensorView[] => names.map((name) => raised(o.tensorNamed(name), q.rank));
  const make = (): TensorView => {
    const joined = parts().reduce(logicalAnd);
    return joined.dtype === "bool" ? addedMask(joined, q.dtype) : joined;
  };
  const mask = masks.get(key) ?? make();
  masks.set(key, mask);
  return mask;
}

/** Attention of [.., L, d]. Heads of q that share one of k and v have an axis for the group. */
const attention: AtenRow = (o) => {
  const [q, key, value] = [o.tensor("query"), o.tensor("key"), o.tensor("value")];
  const options = seenBy(o, q);
  const heads = grouped(q, unrepeated(o, key), unrepeated(o, value)) ?? [q, key, value];
  const found = sdpa(...heads, { ...options, ...alignedMask(o, options.mask, q, heads[0]) });
  const output = ungrouped(found.output, q, at(value.extents, value.rank - 1));
  if (o.node.outputs.length === 1) return output;
  return o.node.outputs.map((_, i) => {
    if (i === 0) return output;
    return i === 1 ? asSaved(ungrouped(found.logsumexp, q), o.sizesOf(1)) : seed(o, i);
  });
};

/** Nothing is random without dropout: the state of the generator may be any number. */
function seed(o: NodeOperands, i: number): TensorView | null {
  return o.dtypeOf(i) === "int64" ? full(o.fusion, [], 0, "int64") : null;
}

/** Kernels give each group of heads of q that share one of k and v an axis. Null where no heads share one. */
function grouped(q: TensorView, k: TensorView, v: TensorView): Heads | null {
  if (q.rank < 3) return null;
  const headsOf = (x: TensorView): number | null => constantValue(at(x.extents, x.rank - 3));
  const [heads, groups] = [headsOf(q), headsOf(k)];
  if (heads === null || groups === null || heads === groups || headsOf(v) !== groups) return null;
  const shared = (x: TensorView): TensorView => withAxes(x, x.rank - 2, 1);
  return [splitHeads(q, groups), shared(k), shared(v)];
}

/** [.., H, L, d] of [.., G, H / G, L, d]; without `rest`, [.., H, L, 1]. */
function splitHeads(x: TensorView, groups: number): TensorView {
  const heads = constantValue(at(x.extents, x.rank - 3)) ?? groups;
  return reshape(x, [...x.extents.slice(0, -3), groups, heads / groups, ...x.extents.slice(-2)]);
}

/** The axes of q again: [.., L] followed by `last`. */
function ungrouped(y: TensorView, q: TensorView, ...last: readonly TensorView["extents"][number][]): TensorView {
  const shape = [...q.extents.slice(0, -1), ...last];
  return y.rank === shape.length ? y : reshape(y, shape);
}

/** Kernels round the number of rows of a logsumexp up, or give it a last axis of extent 1. */
function asSaved(logsumexp: TensorView, sizes: readonly Size[] | null): TensorView | null {
  if (sizes?.includes(0) === true) return null;
  if (sizes?.length === logsumexp.rank + 1) return withAxes(logsumexp, logsumexp.rank, 1);
  const [size, own] = [sizes?.at(-1), constantValue(at(logsumexp.extents, logsumexp.rank - 1))];
  if (typeof size !== "number" || own === null || size <= own) return logsumexp;
  const widths = logsumexp.extents.map((_, axis) => [0, axis === logsumexp.rank - 1 ? size - own : 0] as const);
  return pad(logsumexp, widths, Infinity);
}

/** The logsumexp [.., L] of the rows of q. */
function savedOf(saved: TensorView, q: TensorView): TensorView {
  const shape = q.extents.slice(0, -1);
  if (saved.rank === q.rank) return reshape(saved, shape);
  const isWhole = !extentsDiffer(at(saved.extents, saved.rank - 1), at(shape, shape.length - 1));
  return isWhole
    ? saved
    : slice(
        saved,
        shape.map(() => 0),
        shape,
      );
}

/** The gradients of query, key and value; that of a mask is none. */
const attentionBackward: AtenRow = (o) => {
  const [q, k, v] = [o.tensor("query"), o.tensor("key"), o.tensor("value")];
  const options = seenBy(o, q);
  const heads = grouped(q, k, v);
  const groups = heads === null ? null : (constantValue(at(k.extents, k.rank - 3)) ?? 1);
  const split = (x: TensorView): TensorView => (groups === null ? x : splitHeads(x, groups));
  const saved = savedOf(o.tensor("logsumexp"), q);
  const results: SdpaResult = {
    output: split(o.tensor("out")),
    logsumexp: groups === null ? saved : reshape(saved, split(q).extents.slice(0, -1)),
  };
  const own = heads ?? ([q, k, v] as const);
  const g = split(o.tensor("grad_out"));
  const found = sdpaBackward(g, ...own, results, { ...options, ...alignedMask(o, options.mask, q, own[0]) });
  const parts = [
    [found.dq, q],
    [found.dk, k],
    [found.dv, v],
  ] as const;
  const shaped = parts.map(([part, like]) => (part.rank === like.rank ? part : reshape(part, like.extents)));
  return o.node.outputs.map((_, i) => shaped[i] ?? null);
};

/** Heads before they were repeated: [B, G, L, d] of a reshape of [B, G, r, L, d], which expands [B, G, 1, L, d]. */
function unrepeated(o: NodeOperands, x: TensorView): TensorView {
  const { provenance } = o.building;
  const merged = provenance.get(x.id);
  const expanded = merged?.kind === "reshape" ? provenance.get(merged.of.id) : undefined;
  const added = expanded?.kind === "expand" ? provenance.get(expanded.of.id) : undefined;
  if (added?.kind !== "unsqueeze" || added.axis !== x.rank - 2 || added.of.rank !== x.rank) return x;
  const others = x.extents.filter((_, axis) => axis !== x.rank - 3);
  const own = added.of.extents.filter((_, axis) => axis !== x.rank - 3);
  return others.every((extent, i) => !extentsDiffer(extent, at(own, i))) ? added.of : x;
}

function alignedMask(o: NodeOperands, mask: TensorView | undefined, q: TensorView, grouped: TensorView): SdpaMask {
  if (mask === undefined) return {};
  return { mask: grouped.rank === q.rank ? mask : groupedMask(o, mask, grouped) };
}

/** The mask has one axis of heads, which a group axis splits. */
function groupedMask(o: NodeOperands, mask: TensorView, q: TensorView): TensorView {
  const heads = mask.rank - 3;
  const count = constantValue(at(mask.extents, heads));
  if (count === 1) return withAxes(mask, heads + 1, 1);
  if (count === null) return o.refuse("a mask with a symbolic number of heads", "a number that is known");
  return splitHeads(mask, constantValue(at(q.extents, heads)) ?? 1);
}

export const attentionRows: AtenRows = atenRows({
  "scaled_dot_product_attention.default(query key value attn_mask dropout_p is_causal * scale enable_gqa)": attention,
  "_scaled_dot_product_flash_attention.default(query key value dropout_p is_causal return_debug_mask * scale)":
    attention,
  "_scaled_dot_product_flash_attention_for_cpu.default(query key value dropout_p is_causal * attn_mask scale)":
    attention,
  "_scaled_dot_product_efficient_attention.default(query key value attn_bias compute_log_sumexp dropout_p is_causal * scale)":
    attention,
  "_scaled_dot_product_cudnn_attention.default(query key value attn_bias compute_log_sumexp dropout_p is_causal return_debug_mask * scale)":
    attention,
  "_scaled_dot_product_flash_attention_backward.default(grad_out query key value out logsumexp cum_seq_q cum_seq_k max_q max_k dropout_p is_causal philox_seed philox_offset * scale)":
    attentionBackward,
  "_scaled_dot_product_flash_attention_for_cpu_backward.default(grad_out query key value out logsumexp dropout_p is_causal * attn_mask scale)":
    attentionBackward,
  "_scaled_dot_product_efficient_attention_backward.default(grad_out query key value attn_bias out logsumexp philox_seed philox_offset dropout_p grad_input_mask is_causal * scale)":
    attentionBackward,
  "_scaled_dot_product_cudnn_attention_backward.default(grad_out query key value out logsumexp philox_seed philox_offset attn_bias cum_seq_q cum_seq_k max_q max_k dropout_p is_causal * scale)":
    attentionBackward,
});
