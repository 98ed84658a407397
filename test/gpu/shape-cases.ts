/** Ops that stretch, join, pad, slice and index, for one GPU. */
import { Fusion } from "../../src/ir/api/fusion.ts";
import { scan } from "../../src/ir/api/ops/ordered.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import {
  add,
  argsort,
  cat,
  chunk,
  cummax,
  cumprod,
  cumsum,
  dynamicUpdate,
  embedding,
  expand,
  full,
  gather,
  groupedMatmul,
  iota,
  indexSelect,
  mul,
  pad,
  permute,
  remainder,
  repeatInterleave,
  reshape,
  scatterAdd,
  select,
  slice,
  sort,
  topk,
  unsqueeze,
} from "../../src/ir/api/ops.ts";
import type { DType } from "../../src/numerics/dtype.ts";

const dtypes: readonly DType[] = ["double", "float", "half", "bfloat16", "int", "int64"];

/** Random indices are from -8 to 8: some are outside of their axis. */
export const shapeCases: readonly { readonly name: string; readonly build: () => Fusion }[] = dtypes.map((dtype) => ({
  name: `shapes and indices of ${dtype}`,
  build: () => {
    const f = new Fusion();
    const [table, x] = [f.input([7, 64], dtype), f.input([33, 64], dtype)];
    const [rows, columns] = [f.input([33], "int64"), f.input([33, 3], "int")];
    const stretched = expand(unsqueeze(rows, 1), [-1, 64]);
    const [narrow, deep] = [f.input([6, 1, 10], dtype), f.input([6, 5, 10], dtype)];
    // Several warps scan a column. Places are found by warps together, as all columns have the same.
    const long = f.input([3, 2500], dtype);
    const spread = remainder(mul(iota(f, 2500), 37), 101);
    const everywhere = expand(unsqueeze(spread, 1), [-1, 3]);
    const starts = reshape(cat([0, 38, 7].map((start) => full(f, [1], start, "int64"))), [3, 1, 1]);
    // Rows past the last group are 0.
    const ends = cat([0, 5, 30].map((end) => full(f, [1], end, "int64")));
    for (const output of [
      groupedMatmul(x, f.input([3, 64, 40], dtype), ends),
      groupedMatmul(x, f.input([33, 40], dtype), ends),
      add(x, cat([pad(table, [[1, 20], [0, 0]], 3), slice(x, [0, 0], [10, 64], [2, 1])], 0)), // prettier-ignore
      repeatInterleave(x, 3, 1),
      add(embedding(table, rows), x),
      indexSelect(table, 1, columns),
      gather(x, 1, columns),
      scatterAdd(table, 0, stretched, x),
      scatterAdd(x, 1, columns, gather(x, 1, columns)),
      scatterAdd(full(f, [99], 1, dtype), 0, reshape(columns, [99]), reshape(gather(x, 1, columns), [99])),
      cat([expand(narrow, [6, 5, 10]), deep], 1),
      pad(deep, [[1, 2], [0, 0], [-2, 3]], 3), // prettier-ignore
      slice(deep, [1, 0, 0], [6, 5, 10], [2, 1, 3]),
      ...chunk(deep, 2, 2),
      cumsum(x, 1),
      cumprod(table, 0),
      cummax(deep, 1),
      argsort(x, 1),
      sort(x, 0, { descending: true }).values,
      topk(reshape(x, [33 * 64]), 5).values,
      argsort(reshape(cat([x, add(x, x), x, x, x], 1), [10, 1056]), 0, { descending: true }),
      argsort(reshape(cat([x, add(x, x), x, x, x], 1), [2, 5280]), 1),
      cumsum(long, 1),
      scan("amax", permute(long, [1, 0]), 0, true),
      scatterAdd(full(f, [101], 1, dtype), 0, spread, select(long, 0, 1)),
      scatterAdd(full(f, [101, 3], 1, dtype), 0, everywhere, permute(long, [1, 0])),
      dynamicUpdate(f.input([3, 40, 5], dtype), 1, starts, f.input([3, 2, 5], dtype)),
    ]) {
      f.output(output);
    }
    return f;
  },
}));

/** Sizes that tensor cores take: several tiles for a block, tiles that a group does not fill, groups without rows. */
export const groupedCases: typeof shapeCases = (["half", "bfloat16"] as const).map((dtype) => ({
  name: `grouped matmuls of ${dtype}`,
  build: () => {
    const f = new Fusion();
    const endsOf = (values: readonly number[], as: "int" | "int64"): TensorView =>
      cat(values.map((value) => full(f, [1], value, as)));
    const ragged = endsOf([0, 5, 150, 150, 190], "int64");
    const many = cumsum(full(f, [140], 1, "int"), 0);
    const rows = f.input([150, 64], dtype);
    const x = f.input([200, 72], dtype);
    const buffers = f.input([3, 140, 64], dtype);
    const counts = reshape(endsOf([3, 140, 0], "int"), [3, 1]);
    const shared = f.input([2, 3, 200, 64], dtype);
    for (const output of [
      groupedMatmul(x, f.input([5, 72, 136], dtype), ragged),
      groupedMatmul(x, permute(f.input([5, 136, 72], dtype), [0, 2, 1]), ragged),
      groupedMatmul(x, f.input([200, 136], dtype), ragged),
      groupedMatmul(rows, f.input([140, 64, 64], dtype), many),
      groupedMatmul(rows, f.input([150, 72], dtype), many),
      groupedMatmul(buffers, f.input([3, 1, 64, 72], dtype), counts),
      groupedMatmul(
        shared,
        f.input([2, 1, 1, 64, 72], dtype),
        reshape(endsOf([70, 0, 130, 200, 1, 64], "int"), [2, 3, 1]),
      ),
      groupedMatmul(
        shared,
        f.input([2, 1, 2, 64, 136], dtype),
        reshape(endsOf([1, 70, 0, 0, 130, 190, 9, 200, 0, 1, 3, 64], "int"), [2, 3, 2]),
      ),
      groupedMatmul(buffers, f.input([3, 140, 72], dtype), counts),
    ]) {
      f.output(output);
    }
    return f;
  },
}));
