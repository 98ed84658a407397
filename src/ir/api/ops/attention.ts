/** Attention, forward and backward. */
import { type DType, dtypes } from "../../../numerics/dtype.ts";
import { type Call, reject } from "../../ops/call.ts";
import {
  type AttentionBase,
  attentionDType,
  type CausalMask,
  requireAttention,
  requireKeyLengths,
  requireMaskAxes,
  statisticsDType,
} from "../../ops/kinds/attention/attention.ts";
import { numberText } from "../../ops/number-operand.ts";
import { at } from "../../../support/invariant.ts";
import { commonBuilder, requireTensor } from "../handle.ts";
import type { TensorView } from "../tensor-view.ts";
import { applyAll, callOf } from "./apply.ts";
import { addedMask, alignLeft, attentionOps } from "./compositions/attention.ts";
import { alignRight } from "./compositions/compose.ts";
import { dropout, requireDropout } from "./random.ts";

export interface SdpaOptions {
  /**
   * Which keys a query sees. `topLeft`: query i sees keys 0 to i. `bottomRight`: the last query sees all keys. All see
   * all by default.
   */
  readonly causal?: CausalMask | null;
  /** How many keys a query sees up to the last one that `causal` shows it: a sliding window. All by default. */
  readonly window?: number | null;
  /** The factor of the scores; 1 / sqrt(d) by default. */
  readonly scale?: number;
}

export interface SdpaMask {
  /**
   * Of the axes of the scores [.., Lq, Lk], or of the last of them, with their extents or 1. Bool: whether a query sees
   * a key. A float: what is added to the scores. A query that sees no key, or only with a mask of -Infinity, gives 0.
   * `gradients` writes those of a mask with rows, without `causal`, as matmuls: each row's on its own device.
   */
  readonly mask?: TensorView;
}

/**
 * With dropout, with `softCap`, with both `mask` and `keyLengths`, or with a mask of a wider dtype than the operands,
 * attention is matmuls and a softmax, not one op.
 */
export interface SdpaMasks extends SdpaMask {
  /**
   * How many keys there are, as integers: along the first axes of `q`, or one for all. Keys after them are not seen, and
   * `bottomRight` shows the last query as many.
   */
  readonly keyLengths?: TensorView;
  /** Scores become `softCap tanh(scores / softCap)`, before any mask. */
  readonly softCap?: number;
  readonly dropout?: AttentionDropout;
}

/** Dropout of the probabilities, as `dropout` counts it. */
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
 * q [B, G, r, L, d] with k [B, G, 1, L, d]). A row that sees no key gives 0 and a logsumexp of -Infinity. Lq may differ
 * from Lk: one query is a step of decoding. Throws `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`, `bad-argument`.
 */
export function sdpa(q: TensorView, k: TensorView, v: TensorView, options: SdpaOptions & SdpaMasks = {}): SdpaResult {
  const place = callOf("sdpa", [q, k, v]);
  const attributes = attributesOf(options, place);
  const { dropout: drops, mask, keyLengths, softCap } = options;
  const drop = drops === undefined || drops.p === 0 ? null : drops;
  if (drop !== null || [mask, keyLengths, softCap].some((each) => each !== undefined)) {
    requireAttention(q.data(), k.data(), v.data(), place);
    attentionDType("sdpa", [q.data(), k.data(), v.data()], place);
    requireMasks([q, k], options, place);
  }
  const isAdded = mask === undefined || (keyLengths === undefined && takenDType(mask.dtype, q.dtype) !== null);
  if (drop !== null || softCap !== undefined || !isAdded) {
    if (drop !== null) {
      requireTensor(drop.seed, "sdpa", 3);
      commonBuilder([q, drop.seed], place);
      requireDropout(drop.p, drop.seed, place);
    }
    const all = { ...options, ...attributes, scale: options.scale ?? null };
    return attentionOps([q, k, v], all, (x) => (drop === null ? x : dropout(x, drop.p, drop.seed)));
  }
  const lengths = keyLengths === undefined ? [] : [alignLeft(keyLengths, q.rank - 2)];
  const further = mask === undefined ? lengths : [biasOf(mask, q)];
  const outputs = applyAll({ kind: "Sdpa", ...attributes }, [q, k, v, ...further], place);
  return { output: at(outputs, 0), logsumexp: at(outputs, 1) };
}

export interface SdpaGradients {
  readonly dq: TensorView;
  readonly dk: TensorView;
  readonly dv: TensorView;
}

/**
 * The gradients of q, k and v for the gradient `g` of sdpa's output. `results` are those of sdpa on the same operands
 * with the same options. `gradients` calls it. Throws as sdpa.
 */
export function sdpaBackward(
  g: TensorView,
  q: TensorView,
  k: TensorView,
  v: TensorView,
  results: SdpaResult,
  options: SdpaOptions & SdpaMask = {},
): SdpaGradients {
  const given = [g, q, k, v, results.output, results.logsumexp];
  const place = callOf("sdpaBackward", given);
  if (options.mask !== undefined) requireMasks([q, k], options, place);
  const operands = [...given, ...(options.mask === undefined ? [] : [biasOf(options.mask, q)])];
  const outputs = applyAll({ kind: "SdpaBackward", ...attributesOf(options, place) }, operands, place);
  return { dq: at(outputs, 0), dk: at(outputs, 1), dv: at(outputs, 2) };
}

/** What the op adds to the scores. It refuses what it would have to round. */
function biasOf(mask: TensorView, q: TensorView): TensorView {
  return alignRight(addedMask(mask, takenDType(mask.dtype, q.dtype) ?? mask.dtype), q);
}

/** The dtype of the operands or of their sums, where a mask is exact in it. */
function takenDType(mask: DType, dtype: DType): DType | null {
  const isExact = (to: DType): boolean => mask === "bool" || mask === to || dtypes[mask].bytes < dtypes[to].bytes;
  return [dtype, statisticsDType(dtype)].find(isExact) ?? null;
}

/** Throws `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`, `bad-argument`. */
function requireMasks(
  [q, k]: readonly [TensorView, TensorView],
  { mask, keyLengths, softCap }: SdpaMasks,
  place: Call,
): void {
  if (mask !== undefined) {
    requireTensor(mask, "sdpa", 3);
    commonBuilder([q, mask], place);
    if (!["bool", "float"].includes(dtypes[mask.dtype].family)) {
      reject(place, "dtype-mismatch", "the mask of attention has another dtype", {
        found: mask.dtype,
        expected: "bool or float",
        help: `convert it with cast`,
      });
    }
    requireMaskAxes(mask.data(), q.data(), k.data(), place, true);
  }
  if (keyLengths !== undefined) {
    requireTensor(keyLengths, "sdpa", 3);
    commonBuilder([q, keyLengths], place);
    requireKeyLengths(q.data(), keyLengths.data(), place, true);
  }
  if (softCap === undefined || (Number.isFinite(softCap) && softCap > 0)) return;
  reject(place, "bad-argument", "softCap is not a positive number", {
    found: String(softCap),
    expected: "a number above 0",
    help: "leave it out for scores without a cap",
  });
}

/** Calls from JavaScript may pass other values. Throws `bad-argument`. */
function attributesOf(
  { causal = null, window = null, scale }: SdpaOptions,
  place: Call,
): Pick<AttentionBase, "causal" | "window" | "scale"> {
  if (causal !== null && causal !== "topLeft" && causal !== "bottomRight") {
    reject(place, "bad-argument", "causal is not a kind of mask", {
      found: String(causal),
      expected: '"topLeft", "bottomRight" or null',
      help: 'choose "topLeft" for queries and keys of one sequence',
    });
  }
  if (window !== null && !(Number.isSafeInteger(window) && window > 0 && causal !== null)) {
    reject(place, "bad-argument", "the window of attention shows no keys", {
      found: causal === null ? "a window without causal" : String(window),
      expected: "a whole number from 1 on, beside causal",
      help: 'pass causal: "topLeft" or "bottomRight" too',
    });
  }
  if (scale !== undefined && !(typeof scale === "number" && Number.isFinite(scale))) {
    reject(place, "bad-argument", "the scale of attention is not a finite number", {
      found: String(scale),
      expected: "a finite number",
      help: "leave it out for 1 / sqrt(d)",
    });
  }
  return { causal, window, scale: scale === undefined ? null : numberText(scale) };
}
