/** Fusions for one GPU: every op with every dtype, layouts that cuBLASLt reads in place, and fused units. */
import { Fusion } from "../../src/ir/api/fusion.ts";
import * as api from "../../src/ir/api/ops.ts";
import {
  add,
  amax,
  amin,
  broadcast,
  cast,
  float8Linear,
  gelu,
  linear,
  lt,
  matmul,
  mul,
  neg,
  permute,
  prod,
  quantize,
  reshape,
  rmsNorm,
  scaledLinear,
  set,
  slice,
  squeeze,
  sub,
  sum,
  where,
} from "../../src/ir/api/ops.ts";
import { gradients } from "../../src/ir/api/gradients.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { float8Recipes } from "../../src/ir/fusion-data.ts";
import { binaryFunctions, type BinaryOpType } from "../../src/ir/ops/functions/binary.ts";
import { unaryFunctions } from "../../src/ir/ops/functions/unary.ts";
import { dtypes, isComputed } from "../../src/numerics/dtype.ts";
import { keysOf } from "../../src/support/invariant.ts";
import { takes, unaryCalls } from "../support/unary-calls.ts";
import { attentionCases } from "./attention-cases.ts";
import { groupedCases, shapeCases } from "./shape-cases.ts";

export interface GpuCase {
  readonly name: string;
  readonly build: () => Fusion;
}

type Build = (f: Fusion) => readonly TensorView[];

function fusionCase(name: string, build: Build): GpuCase {
  return {
    name,
    build: () => {
      const f = new Fusion();
      for (const output of build(f)) f.output(output);
      return f;
    },
  };
}

const every = keysOf(dtypes);
const floats = every.filter((dtype) => dtypes[dtype].family === "float" && isComputed(dtype));
const arithmetic = every.filter((dtype) => dtype !== "bool" && isComputed(dtype));

const binary: { readonly [Op in BinaryOpType]: (x: TensorView, y: TensorView) => TensorView } = api;
const reductions = { sum, prod, amax, amin } as const;

export const singleGpuCases: readonly GpuCase[] = [
  ...arithmetic.flatMap((dtype) => [
    fusionCase(`unary ops of ${dtype}`, (f) => {
      const x = f.input([33, 40], dtype);
      return keysOf(unaryFunctions)
        .filter((name) => takes(unaryFunctions[name].operand, dtype))
        .map((name) => unaryCalls[name](x));
    }),
    fusionCase(`binary and ternary ops of ${dtype}`, (f) => {
      const [x, y] = [f.input([33, 40], dtype), f.input([33, 40], dtype)];
      const names = keysOf(binaryFunctions).filter((name) => takes(binaryFunctions[name].operand, dtype));
      return [...names.map((name) => binary[name](x, y)), where(lt(x, y), x, y), where(lt(x, 0), 1, y)];
    }),
    fusionCase(`matmul of ${dtype}`, (f) => [matmul(f.input([65, 48], dtype), f.input([48, 40], dtype))]),
    fusionCase(`linear with bias of ${dtype}`, (f) => [
      linear(f.input([3, 64, 48], dtype), f.input([40, 48], dtype), f.input([40], dtype)),
      // Of odd sizes the library proposes kernels that cut k.
      ...[7, 8].map((n) => linear(f.input([168, 7], dtype), f.input([n, 7], dtype), f.input([n], dtype))),
      linear(f.input([300, 264], dtype), f.input([261, 264], dtype), f.input([261], dtype)),
    ]),
  ]),
  ...every.map((dtype) =>
    fusionCase(`casts from ${dtype}`, (f) => {
      const x = f.input([500], dtype);
      return every.filter((to) => to !== dtype).map((to) => cast(x, to));
    }),
  ),
  ...[...arithmetic, "bool" as const].map((dtype) =>
    fusionCase(`reductions of ${dtype}`, (f) => {
      const x = f.input([7, 64, 33], dtype);
      const names = dtype === "bool" ? (["amax", "amin"] as const) : keysOf(reductions);
      return names.flatMap((name) => [[0], [1], [2], [0, 2], [0, 1, 2]].map((axes) => reductions[name](x, axes)));
    }),
  ),
  ...(["bfloat16", "half"] as const).map((dtype) =>
    fusionCase(`wide products of ${dtype}`, (f) => {
      const product = (a: readonly number[], b: readonly number[]): TensorView =>
        matmul(f.input(a, dtype), f.input(b, dtype), { dtype: "float" });
      const t = (x: TensorView): TensorView => permute(x, [1, 0]);
      const [x, y] = [f.input([64, 48], dtype), f.input([32, 64], dtype)];
      const sizes = [product([128, 256], [256, 64]), product([65, 49], [49, 41]), product([300, 264], [264, 261])];
      const batches = [product([3, 2, 33, 24], [2, 24, 16]), product([4, 64, 64], [64, 32])];
      return [...sizes, ...batches, matmul(t(x), t(y), { dtype: "float" }), product([1, 512], [512, 96])];
    }),
  ),
  ...floats.flatMap((dtype) => [
    fusionCase(`batched matmul of ${dtype}`, (f) => [
      matmul(f.input([3, 2, 33, 24], dtype), f.input([2, 24, 16], dtype)),
    ]),
    fusionCase(`products of transposed ${dtype}`, (f) => {
      const [a, b, c, d] = [
        f.input([64, 48], dtype),
        f.input([48, 64], dtype),
        f.input([48, 32], dtype),
        f.input([32, 48], dtype),
      ];
      const t = (x: TensorView): TensorView => permute(x, [1, 0]);
      return [matmul(a, c), matmul(t(b), c), matmul(a, t(d)), matmul(t(b), t(d)), t(matmul(a, c))];
    }),
  ]),
  ...(["bfloat16", "half", "float"] as const).flatMap((dtype) =>
    (["tensor", "row"] as const).flatMap((granularity) =>
      [[128, 256, 512] as const, [65, 48, 80] as const].map(([m, n, k]) =>
        fusionCase(`scaled matmul by ${granularity} of ${m} x ${n} x ${k} in ${dtype}`, (f) => {
          const [x, w] = [
            quantize(f.input([m, k], "bfloat16"), { granularity }),
            quantize(f.input([n, k], "bfloat16"), { granularity }),
          ];
          const fast = scaledLinear(x.values, w.values, x.scale, w.scale, { dtype, fastAccumulation: true });
          return [scaledLinear(x.values, w.values, x.scale, w.scale, { dtype }), fast];
        }),
      ),
    ),
  ),
  ...(["1x128", "128x128"] as const).flatMap((granularity) =>
    (["bfloat16", "float"] as const).flatMap((dtype) =>
      // Lines of scales of whole and of padded length, and a last block of fewer rows.
      [[256, 256, 512] as const, [72, 384, 640] as const, [65, 144, 256] as const].map(([m, n, k]) =>
        fusionCase(`scaled matmul by 1x128 and ${granularity} of ${m} x ${n} x ${k} in ${dtype}`, (f) => {
          const x = quantize(f.input([m, k], "bfloat16"), { granularity: "1x128" });
          const scaleW = f.input([granularity === "1x128" ? n : Math.ceil(n / 128), k / 128], "float");
          const w = cast(f.input([n, k], "bfloat16"), "float8_e4m3fn", { saturate: true });
          // Also scales that lie as cuBLASLt reads them.
          const ofRows = permute(f.input([k / 128, m], "float"), [1, 0]);
          return [x.scale, ofRows].map((scale) => scaledLinear(x.values, w, scale, scaleW, { dtype }));
        }),
      ),
    ),
  ),
  ...float8Recipes.map((recipe) =>
    fusionCase(`a linear in floats of 8 bits, ${recipe}, both passes`, (f) => {
      const [x, w, dy] = [
        f.input([256, 512], "bfloat16"),
        f.input([256, 512], "bfloat16"),
        f.input([256, 256], "bfloat16"),
      ];
      const y = float8Linear(x, w, null, recipe);
      const found = gradients(f, { of: [y], wrt: [x, w], cotangents: [dy] });
      return [y, ...found.filter((each) => each !== null)];
    }),
  ),
  fusionCase("a norm whose result is quantized by blocks", (f) => {
    const y = rmsNorm(
      add(f.input([128, 512], "bfloat16"), f.input([128, 512], "bfloat16")),
      f.input([512], "bfloat16"),
    );
    const { values, scale } = quantize(y, { granularity: "1x128" });
    return [values, scale];
  }),
  fusionCase("a vector times a matrix times a vector", (f) => {
    const [x, m, y] = [f.input([48], "float"), f.input([48, 40], "float"), f.input([40], "float")];
    return [matmul(x, m), matmul(m, y), matmul(matmul(x, m), y)];
  }),
  fusionCase("a mean taken off, scaled, gelu, in bfloat16", (f) => {
    const [x, weight] = [f.input([64, 1024], "bfloat16"), f.input([1024], "bfloat16")];
    const wide = cast(x, "float");
    const flags = [false, true];
    const mean = broadcast(mul(sum(wide, [1]), f.input([64], "float")), flags);
    return [gelu(mul(cast(sub(wide, mean), "bfloat16"), broadcast(weight, [true, false])))];
  }),
  fusionCase("views of every kind, fused", (f) => {
    const x = f.input([4, 6, 10], "half");
    const y = reshape(permute(x, [2, 0, 1]), [10, 24]);
    const z = slice(y, [1, 3], [9, 19]);
    return [neg(z), set(permute(x, [1, 2, 0])), squeeze(sum(broadcast(z, [true, false, false]), [1]), [0])];
  }),
  fusionCase("long rows and columns", (f) => {
    const x = f.input([3000, 700], "bfloat16");
    return [sum(x, [0]), sum(x, [1]), amax(x, [0, 1])];
  }),
  ...shapeCases,
  ...groupedCases,
  ...attentionCases,
];
