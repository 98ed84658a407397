/** Calls of every kind of op that has a rule. */
import {
  add,
  broadcast,
  cast,
  cat,
  cummax,
  cummin,
  cumprod,
  cumsum,
  expand,
  gather,
  groupedMatmul,
  gt,
  indexSelect,
  linear,
  matmul,
  mul,
  pad,
  permute,
  reshape,
  scatterAdd,
  sdpa,
  select,
  set,
  slice,
  sort,
  squeeze,
  topk,
  where,
} from "../../../src/ir/api/ops.ts";
import type { TensorView } from "../../../src/ir/api/tensor-view.ts";
import type { OpKind } from "../../../src/ir/ops/op.ts";

/** Calls of an op, and the shapes of their operands. */
type Case = readonly [(...inputs: TensorView[]) => TensorView, ...(readonly (readonly number[])[])];

/** The ends of groups, as a tensor of the Fusion of x. */
const ends = (x: TensorView, values: readonly number[]): TensorView => {
  const none = x.extents.map(() => 0);
  const first = reshape(slice(x, none, x.extents.map(() => 1)), [1]); // prettier-ignore
  return cat(values.map((value) => cast(add(mul(first, 0), value), "int64")));
};

const indices = (x: TensorView): TensorView => cast(mul(add(x, 1), 2), "int64");

export const kindCases: { readonly [K in OpKind]: readonly Case[] } = {
  Unary: [],
  Binary: [],
  Ternary: [
    [(a, b) => where(gt(a, 0), a, b), [2, 3], [2, 3]],
    [(a, b) => where(gt(a, 0), b, a), [1, 3], [2, 1]],
    [(a) => where(gt(a, 0), a, 2), [2, 3]],
    [(a) => where(gt(a, 0), -1, a), [2, 3]],
  ],
  Reduction: [],
  Set: [[(x) => set(x), [2, 3]]],
  Cast: [[(x) => cast(x, "double"), [2, 3]]],
  Broadcast: [[(x) => broadcast(x, [false, true, false]), [2, 3]]],
  Expand: [[(x) => expand(x, [4, 3]), [1, 3]]],
  Squeeze: [[(x) => squeeze(x, [1, 2]), [2, 1, 1, 3]]],
  Permute: [[(x) => permute(x, [2, 0, 1]), [2, 3, 4]]],
  Reshape: [[(x) => reshape(x, [3, 4]), [2, 6]]],
  Slice: [
    [(x) => slice(x, [1, 0], [3, 3]), [4, 3]],
    [(x) => slice(x, [1, 0], [7, 3], [2, 1]), [7, 3]],
    [(x) => slice(x, [1, 1], [6, 3], [3, 2]), [8, 3]],
    [(x) => slice(x, [0, 1], [3, 6], [1, 2]), [3, 6]],
  ],
  Select: [
    [(x) => select(x, 1, 2), [2, 3]],
    [(x) => select(x, 0, 0), [2, 3]],
  ],
  Pad: [[(x) => pad(x, [[1, 2], [-1, 1]], 0.5), [2, 3]]], // prettier-ignore
  Cat: [[(a, b, c) => cat([a, b, c], 1), [2, 3], [2, 1], [2, 4]]],
  // Indices from 0 to 3 of the elements themselves: they have no gradient.
  IndexSelect: [
    [(x) => indexSelect(x, 0, indices(select(x, 1, 0))), [4, 3]],
    [(x) => indexSelect(x, 1, indices(x)), [2, 4]],
    [(x) => indexSelect(x, 1, indices(reshape(slice(x, [0, 0], [1, 1]), []))), [2, 4]],
  ],
  Gather: [
    [(x) => gather(x, 1, indices(slice(x, [0, 0], [2, 3]))), [2, 4]],
    [(x) => sort(x, 1).values, [2, 5]],
    [(x) => topk(x, 2, 0).values, [5, 2]],
  ],
  ScatterAdd: [[(x, s) => scatterAdd(x, 0, indices(s), s), [4, 3], [6, 3]]],
  Scan: [
    [(x) => cumsum(x, 0), [4, 3]],
    [(x) => cumsum(x, 1), [2, 5]],
    [(x) => cumprod(x, 1), [2, 5]],
    [(x) => cumprod(where(gt(x, 0.3), 0, x), 1), [2, 5]],
    [(x) => cummax(x, 1), [2, 5]],
    [(x) => cummin(x, 0), [5, 2]],
  ],
  Argsort: [],
  GroupedMatmul: [
    [(x, w) => groupedMatmul(x, w, ends(x, [2, 2, 5])), [6, 3], [3, 3, 4]],
    [(x, y) => groupedMatmul(x, y, ends(x, [2, 2, 5])), [6, 3], [6, 4]],
    [(x, w) => groupedMatmul(x, w, ends(x, [1, 4])), [2, 5, 3], [1, 2, 3, 2]],
    [(x, w) => groupedMatmul(x, w, ends(x, [3])), [1, 4, 3], [2, 1, 3, 2]],
  ],
  Matmul: [
    [matmul, [2, 3], [3, 4]],
    [matmul, [3], [3, 4]],
    [matmul, [2, 3], [3]],
    [matmul, [3], [3]],
    [matmul, [2, 2, 3], [3, 4]],
    [matmul, [2, 3], [2, 3, 4]],
    [matmul, [2, 2, 3], [3]],
    [matmul, [3], [2, 3, 4]],
    [matmul, [2, 1, 2, 3], [2, 3, 4]],
    [matmul, [1, 2, 3], [2, 3, 4]],
    [matmul, [2, 5, 2, 3], [2, 1, 3, 4]],
    [matmul, [1, 2, 3], [3, 4]],
  ],
  Linear: [
    [linear, [2, 3], [4, 3]],
    [linear, [2, 3], [4, 3], [4]],
    [linear, [2, 5, 3], [4, 3], [4]],
    [linear, [3], [4, 3], [4]],
    [linear, [2, 3], [3], []],
    [linear, [3], [3], []],
  ],
  Full: [],
  Iota: [],
  RandomBits: [],
  Sdpa: [
    [(q, k, v) => sdpa(q, k, v).output, [2, 3, 4], [2, 5, 4], [2, 5, 2]],
    [(q, k, v) => sdpa(q, k, v, { causal: "topLeft" }).output, [1, 2, 3, 2], [1, 1, 3, 2], [1, 1, 3, 2]],
    [(q, k, v) => sdpa(q, k, v, { causal: "bottomRight", scale: 0.3 }).output, [3, 2], [2, 2], [2, 3]],
    [(q, k, v) => sdpa(q, k, v, { causal: "bottomRight", window: 2 }).output, [3, 2], [4, 2], [4, 3]],
    // The mask is a function of an operand, so that its gradient counts.
    [(q, k, v, mask) => sdpa(q, k, v, { mask }).output, [2, 3, 4], [2, 5, 4], [2, 5, 2], [3, 5]],
    [
      (q, k, v, mask) => sdpa(q, k, v, { mask, causal: "topLeft" }).output,
      [2, 2, 3, 2],
      [2, 1, 3, 2],
      [2, 1, 3, 2],
      [2, 1, 1, 3],
    ],
    [
      (q, k, v) =>
        sdpa(q, k, v, { keyLengths: cast(add(mul(select(select(q, 2, 0), 1, 0), 0), 4), "int"), causal: "bottomRight" })
          .output,
      [2, 3, 4],
      [2, 5, 4],
      [2, 5, 2],
    ],
  ],
  SdpaBackward: [],
};
