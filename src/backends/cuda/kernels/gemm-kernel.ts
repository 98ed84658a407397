/**
 * A generated GEMM for forms that cuBLASLt does not support: integers, operands without a contiguous axis, a bias that
 * repeats. It uses tiles of 32 x 32 in shared memory, takes any strides and batch axes, and accumulates in the compute
 * type in the order of numerics/sum-order.ts, as the CPU does.
 */
import type { Contraction } from "../../../kernels/gemm/contraction.ts";
import type { NestMemory } from "../../../kernels/nests/nest.ts";
import { apply, computeType, operand, roundTo } from "../../../numerics/scalar/expression.ts";
import { contractionBlock, sumBlock, sumLevels } from "../../../numerics/sum-order.ts";
import { decodeElementText, encodeElementText, storageTypes } from "./text/element-text.ts";
import { indented } from "./kernel-source.ts";
import { constantText, expressionText, scalarTypes } from "./text/expression-text.ts";
import { kernelName, type KernelSource } from "./kernel-source.ts";
import { withPrelude } from "./text/prelude.ts";

const tile = 32;
const rowsPerThread = 4;

/**
 * The kernel's parameters are a, b, the bias if there is one, what it adds to if `hasAddend`, then c. What it adds to
 * has the strides of c.
 */
export function gemmKernel(
  contraction: Contraction,
  operands: readonly NestMemory[],
  hasAddend: boolean,
): KernelSource {
  const { dtype, m, n, k, a, b, c, bias, batch, accumulate = false } = contraction;
  const type = computeType[dtype];
  const stored = storageTypes[dtype];
  const scalar = scalarTypes[type];
  const multiplyAdd = expressionText(apply("add", operand(type, 0), apply("mul", operand(type, 1), operand(type, 2))), [
    "sum[i]",
    "left[row + i][z]",
    "right[z][column]",
  ]);
  const levels = sumLevels(k, contractionBlock[dtype]);
  const add = (left: string, right: string): string =>
    expressionText(apply("add", operand(type, 0), operand(type, 1)), [left, right]);
  /** The sums of a level, and those of the next one. */
  const sumsOf = (level: number): string => (level === 0 ? "sum" : `sum${level}`);
  // What the output holds comes before the sums of blocks, as the first of them.
  const startsFromOutput = accumulate && levels > 1;
  const added = [...(accumulate && !startsFromOutput ? ["before"] : []), ...(bias === null ? [] : ["offset"])];
  const result = added.reduce((sum, _, i) => apply("add", sum, operand(type, i + 1)), operand(type, 0));
  const zero = constantText(type, type === "i64" ? 0n : 0);
  const place = `[offsetC + x * ${c.row}ull + y * ${c.column}ull]`;
  const target = `c${place}`;
  const before = `${hasAddend ? "addend" : "c"}${place}`;
  const inputs = ["a", "b", ...(bias === null ? [] : ["bias"]), ...(hasAddend ? ["addend"] : [])];
  const pointers = [...inputs.map((name) => `const ${stored} *${name}`), `${stored} *c`].join(", ");
  const text = [
    `extern "C" __global__ void __launch_bounds__(${(tile * tile) / rowsPerThread}) ${kernelName}(${pointers}) {`,
    `__shared__ ${scalar} left[${tile}][${tile + 1}];`,
    `__shared__ ${scalar} right[${tile}][${tile + 1}];`,
    "unsigned long long offsetA = 0, offsetB = 0, offsetC = 0;",
    "unsigned rest = blockIdx.z;",
    ...batch
      .toReversed()
      .flatMap((axis) => [
        "{",
        `const unsigned long long index = rest % ${axis.extent}u;`,
        `rest /= ${axis.extent}u;`,
        `offsetA += index * ${axis.a}ull;`,
        `offsetB += index * ${axis.b}ull;`,
        `offsetC += index * ${axis.c}ull;`,
        "}",
      ]),
    `const unsigned column = threadIdx.x % ${tile}u;`,
    `const unsigned row = threadIdx.x / ${tile}u * ${rowsPerThread}u;`,
    `const unsigned firstRow = blockIdx.y * ${tile}u;`,
    `const unsigned firstColumn = blockIdx.x * ${tile}u;`,
    ...Array.from({ length: levels }, (_, level) => [
      `${scalar} ${sumsOf(level)}[${rowsPerThread}];`,
      "#pragma unroll",
      `for (int i = 0; i < ${rowsPerThread}; i++) ${sumsOf(level)}[i] = ${zero};`,
    ]).flat(),
    ...(startsFromOutput
      ? [
          "#pragma unroll",
          `for (int i = 0; i < ${rowsPerThread}; i++) {`,
          "const unsigned long long x = firstRow + row + i, y = firstColumn + column;",
          `if (x < ${m}u && y < ${n}u) ${sumsOf(levels - 1)}[i] = ${decodeElementText(dtype, before)};`,
          "}",
        ]
      : []),
    `for (unsigned depth = 0; depth < ${k}u; depth += ${tile}u) {`,
    "#pragma unroll",
    `for (int i = 0; i < ${rowsPerThread}; i++) {`,
    "const unsigned line = row + i;",
    "const unsigned long long x = firstRow + line, y = firstColumn + column;",
    "const unsigned long long across = depth + column, down = depth + line;",
    `left[line][column] = x < ${m}u && across < ${k}u ? ${decodeElementText(dtype, `a[offsetA + x * ${a.row}ull + across * ${a.column}ull]`)} : ${zero};`,
    `right[line][column] = down < ${k}u && y < ${n}u ? ${decodeElementText(dtype, `b[offsetB + down * ${b.row}ull + y * ${b.column}ull]`)} : ${zero};`,
    "}",
    "__syncthreads();",
    `for (int z = 0; z < ${tile}; z++) {`,
    "#pragma unroll",
    `for (int i = 0; i < ${rowsPerThread}; i++) sum[i] = ${multiplyAdd};`,
    "}",
    "__syncthreads();",
    // A block is whole: its sum goes to the next level, as far as that one's block is whole, too.
    ...Array.from({ length: levels - 1 }, (_, level) => {
      const terms = contractionBlock[dtype] * sumBlock ** level;
      return [
        `if ((depth + ${tile}u) % ${terms}u == 0 || depth + ${tile}u >= ${k}u) {`,
        "#pragma unroll",
        `for (int i = 0; i < ${rowsPerThread}; i++) {`,
        `${sumsOf(level + 1)}[i] = ${add(`${sumsOf(level + 1)}[i]`, `${sumsOf(level)}[i]`)};`,
        `${sumsOf(level)}[i] = ${zero};`,
        "}",
        "}",
      ];
    }).flat(),
    "}",
    "#pragma unroll",
    `for (int i = 0; i < ${rowsPerThread}; i++) {`,
    "const unsigned long long x = firstRow + row + i, y = firstColumn + column;",
    `if (x < ${m}u && y < ${n}u) {`,
    ...(bias === null ? [] : [`const ${scalar} offset = ${decodeElementText(dtype, `bias[y * ${bias}ull]`)};`]),
    ...(accumulate && !startsFromOutput ? [`const ${scalar} before = ${decodeElementText(dtype, before)};`] : []),
    `${target} = ${encodeElementText(dtype, roundTo(dtype, result), [`${sumsOf(levels - 1)}[i]`, ...added])};`,
    "}",
    "}",
    "}",
  ];
  const batches = batch.reduce((product, { extent }) => product * extent, 1);
  return {
    text: withPrelude(`${indented(text)}\n`),
    grid: [Math.ceil(n / tile), Math.ceil(m / tile), batches],
    block: [(tile * tile) / rowsPerThread, 1, 1],
    parameters: operands,
  };
}
