/** Attention, forward and backward. */
import { type Call, reject } from "../../ops/call.ts";
import { attentionDType, type CausalMask, requireAttention } from "../../ops/kinds/attention/attention.ts";
import { numberText } from "../../ops/number-operand.ts";
import { at } from "../../../support/invariant.ts";
import { commonBuilder, requireTensor } from "../handle.ts";
import type { TensorView } from "../tensor-view.ts";
import { applyAll, callOf } from "./apply.ts";
import { attentionOps } from "./compositions/attention.ts";
import { dropout, requireDropout } from "./random.ts";

export interface SdpaOptions {
  /**
   * Which keys a query sees. `topLeft`: query i sees keys 0 to i. `bottomRight`: the last query sees all keys. All see
   * all by default.
   */
  readonly causal?: CausalMask | null;
  /** The factor of the scores; 1 / sqrt(d) by default. */
  readonly scale?: number;
}

/** Dropout of the probabilities, as `dropout` counts it. Attention is then matmuls and a softmax, not one op. */
export interface AttentionDropout {
  readonly p: number;
  readonly seed: TensorView;
}

export interface SdpaResult {
  /** [.., Lq, e], of the dtype of the operands. */
  readonly output: TensorView;
  /** `[.., Lq]`: the logarithm of each row's sum of exponentials. float, or double of double operands. */
  readonly logsumexp: TensorView;
}

/**
 * Scaled dot product attention: `softmax(scale q k^T) v`, for q [.., Lq, d], k [.., Lk, d] and v [.., Lk, e] of one
 * float dtype. Of the axes in front, k and v have the extent of q, or 1: heads of q share a head of k (grouped queries,
 * q [B, G, r, L, d] with k [B, G, 1, L, d]). A row that sees no key gives 0 and a logsumexp of -Infinity. Throws
 * `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`, `bad-argument`.
 */
export function sdpa(
  q: TensorView,
  k: TensorView,
  v: TensorView,
  options: SdpaOptions & { readonly dropout?: AttentionDropout } = {},
): SdpaResult {
  const place = callOf("sdpa", [q, k, v]);
  const attributes = attributesOf(options, place);
  if (options.dropout !== undefined && options.dropout.p !== 0) {
    const { p, seed } = options.dropout;
    requireTensor(seed, "sdpa", 3);
    commonBuilder([q, seed], place);
    requireDropout(p, seed, place);
    requireAttention(q.data(), k.data(), v.data(), place);
    attentionDType("sdpa", [q.data(), k.data(), v.data()], place);
    const scale = options.scale ?? null;
    return attentionOps([q, k, v], { causal: attributes.causal, scale }, (x) => dropout(x, p, seed));
  }
  const outputs = applyAll({ kind: "Sdpa", ...attributes }, [q, k, v], place);
  return { output: at(outputs, 0), logsumexp: at(outputs, 1) };
}

export interface SdpaGradients {
  readonly dq: TensorView;
  readonly dk: TensorView;
  readonly dv: TensorView;
}

/**
 * The gradients of q, k and v, where `g` is the gradient of sdpa's output, and `results` are those of sdpa on the same
 * operands with the same options. `gradients` calls it. Throws as sdpa.
 */
export function sdpaBackward(
  g: TensorView,
  q: TensorView,
  k: TensorView,
  v: TensorView,
  results: SdpaResult,
  options: SdpaOptions = {},
): SdpaGradients {
  const operands = [g, q, k, v, results.output, results.logsumexp];
  const place = callOf("sdpaBackward", operands);
  const outputs = applyAll({ kind: "SdpaBackward", ...attributesOf(options, place) }, operands, place);
  return { dq: at(outputs, 0), dk: at(outputs, 1), dv: at(outputs, 2) };
}

/** Calls from JavaScript may pass other values. Throws `bad-argument`. */
function attributesOf(
  { causal = null, scale }: SdpaOptions,
  place: Call,
): { readonly causal: CausalMask | null; readonly scale: string | null } {
  if (causal !== null && causal !== "topLeft" && causal !== "bottomRight") {
    reject(place, {
      code: "bad-argument",
      message: "causal is not a kind of mask",
      found: String(causal),
      expected: '"topLeft", "bottomRight" or null',
      help: 'choose "topLeft" for queries and keys of one sequence',
    });
  }
  if (scale !== undefined && !(typeof scale === "number" && Number.isFinite(scale))) {
    reject(place, {
      code: "bad-argument",
      message: "the scale of attention is not a finite number",
      found: String(scale),
      expected: "a finite number",
      help: "leave it out for 1 / sqrt(d)",
    });
  }
  return { causal, scale: scale === undefined ? null : numberText(scale) };
}
