/** Attention, forward and backward, for one GPU. */
import { Fusion } from "../../src/ir/api/fusion.ts";
import { gradients } from "../../src/ir/api/gradients.ts";
import { cat, full, reshape, sdpa, sdpaBackward, type SdpaOptions } from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import type { DType } from "../../src/numerics/dtype.ts";

export interface AttentionForm extends SdpaOptions {
  readonly name: string;
  readonly q: readonly number[];
  readonly k: readonly number[];
  /** The shape of k if omitted. */
  readonly v?: readonly number[];
  /** How many keys there are, along the first axes of q. */
  readonly lengths?: readonly number[];
  /** An input that masks the scores: bools, or what is added to them, of the dtype of the operands or of float. */
  readonly mask?: { readonly of: "bool" | "bias" | "float"; readonly shape: readonly number[] };
}

export interface AttentionCase {
  readonly name: string;
  readonly build: () => Fusion;
  /** Without gradients. */
  readonly forward: () => Fusion;
}

const forms: readonly AttentionForm[] = [
  { name: "attention", q: [2, 3, 40, 16], k: [2, 3, 33, 16] },
  { name: "causal attention of grouped queries", q: [1, 2, 3, 48, 8], k: [1, 2, 1, 48, 8], causal: "topLeft" },
  { name: "attention to a prefix", q: [2, 20, 8], k: [2, 50, 8], causal: "bottomRight", scale: -0.2 },
  {
    name: "attention of a window",
    q: [1, 2, 70, 16],
    k: [1, 2, 70, 16],
    causal: "topLeft",
    window: 20,
  },
  { name: "attention with rows that see no key", q: [50, 8], k: [20, 8], causal: "bottomRight" },
  {
    name: "attention to as many keys as there are",
    q: [3, 2, 4, 2, 16],
    k: [3, 2, 1, 300, 16],
    lengths: [0, 300, 171],
  },
  { name: "attention with a mask", q: [2, 3, 9, 16], k: [2, 3, 5, 16], mask: { of: "bool", shape: [2, 1, 9, 5] } },
  { name: "biased attention", q: [2, 3, 80, 16], k: [2, 3, 33, 16], mask: { of: "bias", shape: [3, 80, 33] } },
  {
    name: "causal attention to padded keys",
    q: [2, 2, 3, 70, 8],
    k: [2, 2, 1, 70, 8],
    causal: "topLeft",
    mask: { of: "bool", shape: [2, 1, 1, 1, 70] },
  },
  {
    name: "biased attention of a window",
    q: [2, 70, 16],
    k: [1, 70, 16],
    causal: "topLeft",
    window: 20,
    scale: -0.3,
    mask: { of: "bias", shape: [70, 70] },
  },
  { name: "a bias of rows", q: [2, 9, 8], k: [2, 7, 8], scale: 0, mask: { of: "bias", shape: [2, 9, 1] } },
];

/** Of 16-bit floats, for cuDNN: sizes of its engines, and uneven ones. */
const fusedForms: readonly AttentionForm[] = [
  { name: "no mask", q: [2, 2, 128, 64], k: [2, 2, 128, 64] },
  { name: "causal", q: [1, 2, 256, 64], k: [1, 2, 256, 64], causal: "topLeft" },
  { name: "causal, heads of 128", q: [1, 2, 128, 128], k: [1, 2, 128, 128], causal: "topLeft" },
  { name: "grouped queries", q: [1, 2, 4, 128, 64], k: [1, 2, 1, 128, 64] },
  { name: "causal, grouped queries", q: [2, 1, 4, 128, 64], k: [2, 1, 1, 128, 64], causal: "topLeft" },
  { name: "one head of keys", q: [3, 96, 64], k: [1, 96, 64], causal: "topLeft" },
  { name: "uneven lengths", q: [1, 2, 100, 64], k: [1, 2, 77, 64] },
  { name: "causal, uneven length", q: [1, 2, 130, 64], k: [1, 2, 130, 64], causal: "topLeft" },
  { name: "causal, more rows than keys", q: [1, 2, 150, 64], k: [1, 2, 90, 64], causal: "topLeft" },
  { name: "a chunk of late rows", q: [1, 2, 64, 64], k: [1, 2, 192, 64], causal: "bottomRight" },
  { name: "late rows, uneven", q: [1, 2, 33, 64], k: [1, 2, 121, 64], causal: "bottomRight" },
  { name: "a window", q: [1, 2, 512, 64], k: [1, 2, 512, 64], causal: "topLeft", window: 128 },
  { name: "an uneven window", q: [1, 2, 333, 64], k: [1, 2, 333, 64], causal: "topLeft", window: 77 },
  { name: "a window of one key", q: [1, 2, 130, 64], k: [1, 2, 130, 64], causal: "topLeft", window: 1 },
  {
    name: "a window longer than the keys, grouped queries",
    q: [1, 2, 4, 128, 128],
    k: [1, 2, 1, 128, 128],
    causal: "topLeft",
    window: 4096,
  },
  { name: "a window of late rows", q: [1, 2, 64, 64], k: [1, 2, 192, 64], causal: "bottomRight", window: 50 },
  { name: "a window, first keys", q: [1, 2, 100, 64], k: [1, 2, 192, 64], causal: "topLeft", window: 50 },
  {
    name: "a window, heads of 256",
    q: [1, 2, 2, 300, 256],
    k: [1, 2, 1, 300, 256],
    causal: "topLeft",
    window: 100,
  },
  { name: "one row", q: [1, 4, 1, 64], k: [1, 4, 50, 64] },
  { name: "heads of 8", q: [1, 2, 64, 8], k: [1, 2, 64, 8], causal: "topLeft" },
  { name: "heads of 40", q: [1, 2, 64, 40], k: [1, 2, 64, 40] },
  { name: "heads of 136, uneven lengths", q: [1, 2, 100, 136], k: [1, 2, 77, 136] },
  {
    name: "heads of 192, values of 128",
    q: [1, 4, 128, 192],
    k: [1, 4, 128, 192],
    v: [1, 4, 128, 128],
    causal: "topLeft",
  },
  { name: "heads of 256", q: [2, 2, 128, 256], k: [2, 2, 128, 256] },
  { name: "causal heads of 256, grouped queries", q: [1, 2, 2, 192, 256], k: [1, 2, 1, 192, 256], causal: "topLeft" },
  { name: "late rows, heads of 256", q: [1, 2, 33, 256], k: [1, 2, 121, 256], causal: "bottomRight" },
  { name: "values of other size", q: [1, 2, 64, 64], k: [1, 2, 64, 64], v: [1, 2, 64, 32], causal: "topLeft" },
  { name: "a large scale", q: [1, 2, 64, 64], k: [1, 2, 64, 64], scale: 0.5 },
  { name: "keys shared by the batch", q: [2, 2, 64, 64], k: [1, 2, 64, 64] },
  { name: "copied queries", q: [2, 2, 3, 64, 64], k: [1, 2, 1, 64, 64], causal: "topLeft" },
  { name: "padded keys", q: [2, 2, 128, 64], k: [2, 2, 128, 64], mask: { of: "bool", shape: [2, 1, 1, 128] } },
  {
    name: "causal, padded keys, grouped queries",
    q: [2, 2, 4, 128, 128],
    k: [2, 2, 1, 128, 128],
    causal: "topLeft",
    mask: { of: "bool", shape: [2, 1, 1, 1, 128] },
  },
  { name: "a mask", q: [2, 2, 128, 64], k: [2, 2, 128, 64], mask: { of: "bool", shape: [2, 1, 128, 128] } },
  { name: "a mask, uneven", q: [2, 2, 100, 64], k: [2, 2, 77, 64], mask: { of: "bool", shape: [2, 1, 100, 77] } },
  { name: "a mask of all", q: [2, 2, 130, 64], k: [2, 2, 130, 64], mask: { of: "bool", shape: [130, 130] } },
  { name: "a bias of heads", q: [2, 4, 128, 64], k: [2, 4, 128, 64], mask: { of: "bias", shape: [4, 128, 128] } },
  { name: "a bias of each head", q: [2, 4, 64, 64], k: [2, 4, 64, 64], mask: { of: "bias", shape: [2, 4, 64, 64] } },
  {
    name: "a bias of heads of keys, grouped queries",
    q: [2, 2, 4, 128, 64],
    k: [2, 2, 1, 128, 64],
    mask: { of: "bias", shape: [2, 1, 128, 128] },
  },
  {
    name: "a window, biased",
    q: [1, 2, 333, 64],
    k: [1, 2, 333, 64],
    causal: "topLeft",
    window: 77,
    mask: { of: "bias", shape: [2, 333, 333] },
  },
  {
    name: "late rows, padded keys",
    q: [2, 2, 33, 64],
    k: [2, 2, 121, 64],
    causal: "bottomRight",
    mask: { of: "bool", shape: [2, 1, 1, 121] },
  },
  { name: "one row, padded keys", q: [2, 4, 1, 64], k: [2, 4, 50, 64], mask: { of: "bool", shape: [2, 1, 1, 50] } },
  { name: "heads of 256, biased", q: [2, 2, 128, 256], k: [2, 2, 128, 256], mask: { of: "bias", shape: [128, 128] } },
  { name: "a bias of rows", q: [2, 2, 128, 64], k: [2, 2, 128, 64], mask: { of: "bias", shape: [2, 1, 128, 1] } },
  { name: "a bias of float", q: [2, 4, 100, 64], k: [2, 4, 77, 64], mask: { of: "float", shape: [4, 100, 77] } },
  {
    name: "a bias of float, of keys",
    q: [2, 2, 2, 128, 128],
    k: [2, 2, 1, 128, 128],
    causal: "topLeft",
    mask: { of: "float", shape: [2, 1, 1, 1, 128] },
  },
];

/** For the kernel of few queries: one run of keys or several, several tiles of rows, and lengths of each head. */
const decodeForms: readonly AttentionForm[] = [
  { name: "one query", q: [4, 2, 4, 1, 128], k: [4, 2, 1, 700, 128], lengths: [1, 700, 350, 900] },
  { name: "one query, few keys", q: [3, 8, 1, 64], k: [3, 8, 40, 64], lengths: [0, 40, -3] },
  { name: "three queries", q: [2, 3, 8, 3, 64], k: [2, 3, 1, 333, 64], lengths: [2, 333], causal: "bottomRight" },
  {
    name: "a window of the last keys",
    q: [3, 2, 4, 3, 64],
    k: [3, 2, 1, 700, 64],
    lengths: [2, 700, 333],
    causal: "bottomRight",
    window: 128,
  },
  {
    name: "a short window of many keys",
    q: [2, 2, 1, 128],
    k: [2, 2, 5000, 128],
    lengths: [4999, 40],
    causal: "bottomRight",
    window: 9,
  },
  {
    name: "a window of the first keys",
    q: [1, 2, 20, 16],
    k: [1, 2, 50, 16],
    lengths: [11],
    causal: "topLeft",
    window: 4,
  },
  { name: "the first keys", q: [1, 2, 20, 16], k: [1, 2, 50, 16], v: [1, 2, 50, 48], lengths: [11], causal: "topLeft" },
  { name: "heads of 256", q: [2, 2, 1, 256], k: [2, 2, 190, 256], lengths: [64, 190, 65, 3], scale: -0.1 },
  { name: "keys of all", q: [5, 2, 1, 32], k: [1, 2, 500, 32], lengths: [1, 2, 3, 499, 500] },
  { name: "copied keys", q: [2, 3, 2, 1, 64], k: [2, 1, 2, 90, 64], lengths: [1, 2, 3, 80, 90, 5] },
];

/** The same in small, for a cuDNN that is emulated. */
const smallForms: readonly AttentionForm[] = [
  { name: "no mask", q: [2, 2, 5, 8], k: [2, 2, 7, 8] },
  { name: "causal, grouped queries", q: [2, 1, 3, 6, 8], k: [2, 1, 1, 6, 8], causal: "topLeft" },
  { name: "late rows", q: [2, 4, 8], k: [2, 9, 8], v: [2, 9, 16], causal: "bottomRight", scale: 0.2 },
  { name: "a window", q: [2, 2, 9, 8], k: [2, 2, 9, 8], causal: "topLeft", window: 3 },
  { name: "a window of late rows", q: [2, 4, 8], k: [2, 9, 8], causal: "bottomRight", window: 4 },
  { name: "keys shared by the batch", q: [2, 3, 5, 8], k: [1, 3, 6, 8] },
  { name: "copied queries", q: [2, 3, 2, 5, 8], k: [1, 3, 1, 6, 8] },
  {
    name: "causal, padded keys, grouped queries",
    q: [2, 1, 3, 6, 8],
    k: [2, 1, 1, 6, 8],
    causal: "topLeft",
    mask: { of: "bool", shape: [2, 1, 1, 1, 6] },
  },
  { name: "a bias of heads", q: [2, 2, 5, 8], k: [2, 2, 7, 8], mask: { of: "bias", shape: [2, 5, 7] } },
  {
    name: "a bias of heads of keys, grouped queries",
    q: [2, 2, 3, 5, 8],
    k: [2, 2, 1, 7, 8],
    mask: { of: "bias", shape: [2, 1, 5, 7] },
  },
];

/** Forward, and backward. The outputs are output, logsumexp, dq, dk and dv. */
export function attentionFusion(
  { q: queries, k: keys, v = keys, ...form }: AttentionForm,
  dtype: DType,
  isForward = false,
): Fusion {
  const { causal, window, scale, lengths, mask } = form;
  const f = new Fusion();
  const axes = lengths === undefined || lengths.length === queries[0] ? 1 : 2;
  const options = {
    ...(causal === undefined ? {} : { causal }),
    ...(window === undefined ? {} : { window }),
    ...(scale === undefined ? {} : { scale }),
    ...(lengths === undefined ? {} : { keyLengths: numbers(f, lengths, queries.slice(0, axes)) }),
    ...(mask === undefined ? {} : { mask: f.input(mask.shape, mask.of === "bias" ? dtype : mask.of) }),
  };
  const wrt = [f.input(queries, dtype), f.input(keys, dtype), f.input(v, dtype)] as const;
  const { output, logsumexp } = sdpa(...wrt, options);
  if (isForward) {
    for (const result of [output, logsumexp]) f.output(result);
    return f;
  }
  const g = f.input([...queries.slice(0, -1), v.at(-1) ?? 1], dtype);
  // Gradients of a mask of all rows are ops, where `gradients` makes them.
  const { dq, dk, dv } =
    mask === undefined ? gradientsOf(f, output, g, wrt) : sdpaBackward(g, ...wrt, { output, logsumexp }, options);
  for (const result of [output, logsumexp, dq, dk, dv]) if (result !== null) f.output(result);
  return f;
}

type Wrt = readonly [q: TensorView, k: TensorView, v: TensorView];

function gradientsOf(
  f: Fusion,
  output: TensorView,
  g: TensorView,
  wrt: Wrt,
): Readonly<Record<"dq" | "dk" | "dv", TensorView | null>> {
  const [dq = null, dk = null, dv = null] = gradients(f, { of: [output], cotangents: [g], wrt });
  return { dq, dk, dv };
}

function numbers(f: Fusion, values: readonly number[], shape: readonly number[]): TensorView {
  return reshape(cat(values.map((value) => full(f, [1], value, "int64"))), shape);
}

function casesOf(dtypes: readonly DType[], all: readonly AttentionForm[], isForward = false): readonly AttentionCase[] {
  return dtypes.flatMap((dtype) =>
    all.map((form) => ({
      name: `${form.name} of ${dtype}`,
      build: () => attentionFusion(form, dtype, isForward),
      forward: () => attentionFusion(form, dtype, true),
    })),
  );
}

export const attentionCases = casesOf(["double", "float", "half", "bfloat16"], forms);
export const fusedAttentionCases = casesOf(["bfloat16", "half"], fusedForms);
export const decodeCases = casesOf(["bfloat16", "half"], decodeForms, true);
export const smallAttentionCases = casesOf(["bfloat16", "half"], smallForms);
