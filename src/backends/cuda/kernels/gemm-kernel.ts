/**
 * A generated GEMM for forms that cuBLASLt does not support: integers, operands without a contiguous axis, a bias that
 * repeats. It uses tiles of 32 x 32 in shared memory, takes any strides and batch axes, and accumulates in the compute
 * type in the order of numerics/sum-order.ts, as the CPU does.
 */
import { dtypes } from "../../../numerics/dtype.ts";
import { scaledBlock } from "../../../ir/ops/kinds/contractions.ts";
import type { Contraction, Groups, ScaledOperand } from "../../../kernels/gemm/contraction.ts";
import type { NestMemory } from "../../../kernels/nests/nest.ts";
import { apply, computeType, operand, roundTo } from "../../../numerics/scalar/expression.ts";
import { contractionBlock, sumBlock, sumLevels } from "../../../numerics/sum-order.ts";
import { decodeElementText, encodeElementText } from "./text/element-text.ts";
import { indented } from "./kernel-source.ts";
import { constantText, expressionText, scalarTypes } from "./text/expression-text.ts";
import { at } from "../../../support/invariant.ts";
import { kernelName, type KernelSource } from "./kernel-source.ts";
import { withPrelude } from "./text/prelude.ts";

const tile = 32;
const rowsPerThread = 4;

/**
 * The kernel's parameters are a, b, the bias if there is one, what it adds to if `hasAddend`, both scales if it is
 * scaled, then c. What it adds to has the strides of c.
 */
export function gemmKernel(
  contraction: Contraction,
  operands: readonly NestMemory[],
  hasAddend: boolean,
): KernelSource {
  const { dtype, m, n, k, a, b, c, bias, batch, groups, scaled, accumulate = false } = contraction;
  const type = computeType[dtype];
  const stored = dtypes[dtype].cuda.c;
  const scalar = scalarTypes[type];
  const multiplyAdd = expressionText(apply("add", operand(type, 0), apply("mul", operand(type, 1), operand(type, 2))), [
    "sum[i]",
    "left[row + i][z]",
    "right[z][column]",
  ]);
  const levels = sumLevels(k, contractionBlock(dtype));
  const add = (left: string, right: string): string =>
    expressionText(apply("add", operand(type, 0), operand(type, 1)), [left, right]);
  /** The sums of a level, and those of the next one. */
  const sumsOf = (level: number): string => (level === 0 ? "sum" : `sum${level}`);
  // What the output holds comes before the sums of blocks, as the first of them.
  const startsFromOutput = accumulate && levels > 1;
  const added = [...(accumulate && !startsFromOutput ? ["before"] : []), ...(bias === null ? [] : ["offset"])];
  // Scales of blocks multiply what is read, as in kernels/unit-plan.ts.
  const factors = scaled === undefined || scaled.a.blocks !== undefined ? [] : ["ofRow", "ofColumn"];
  const blockScale = (name: string, of: ScaledOperand | undefined, index: string, depth: string): string =>
    of?.blocks === undefined
      ? ""
      : ` * ${name}[${index} / ${of.blocks.rows}u * ${of.stride}ull + ${depth} / ${scaledBlock}u * ${of.blocks.stride}ull]`;
  const product = factors.reduce((sum, _, i) => apply("mul", sum, operand(type, i + 1)), operand(type, 0));
  const result = added.reduce((sum, _, i) => apply("add", sum, operand(type, factors.length + i + 1)), product);
  const zero = constantText(type, type === "i64" ? 0n : 0);
  const place = `[offsetC + x * ${c.row}ull + y * ${c.column}ull]`;
  const target = `c${place}`;
  const before = `${hasAddend ? "addend" : "c"}${place}`;
  const inputs = ["a", "b", ...(bias === null ? [] : ["bias"]), ...(hasAddend ? ["addend"] : [])];
  const ends = groups === undefined ? [] : [`const ${dtypes[groups.ends.dtype].cuda.c} *ends`];
  const own = contraction.narrow ?? contraction.dtype;
  const [ofA, ofB] = [scaled?.a.dtype ?? own, scaled?.b.dtype ?? own];
  const typeOf = (name: string): string => dtypes[name === "a" ? ofA : name === "b" ? ofB : dtype].cuda.c;
  const scales = scaled === undefined ? [] : ["const float *scaleA", "const float *scaleB"];
  const pointers = [...inputs.map((name) => `const ${typeOf(name)} *${name}`), ...scales, ...ends, `${stored} *c`].join(
    ", ",
  );
  // Of the block's group, whose size only the run knows.
  const rows = groups?.of === "m" ? "stop" : `${m}u`;
  const length = groups === undefined ? `${k}u` : "terms";
  const [inA, inB] = [`x * ${a.row}ull + across * ${a.column}ull`, `down * ${b.row}ull + y * ${b.column}ull`];
  const elementOfA = decodeElementText(ofA, `a[offsetA + ${inA}]`) + blockScale("scaleA", scaled?.a, "x", "across");
  const elementOfB = decodeElementText(ofB, `b[offsetB + ${inB}]`) + blockScale("scaleB", scaled?.b, "y", "down");
  const text = [
    `extern "C" __global__ void __launch_bounds__(${(tile * tile) / rowsPerThread}) ${kernelName}(${pointers}) {`,
    `__shared__ ${scalar} left[${tile}][${tile + 1}];`,
    `__shared__ ${scalar} right[${tile}][${tile + 1}];`,
    `unsigned long long offsetA = 0, offsetB = 0, offsetC = 0${groups === undefined ? "" : ", offsetEnds = 0"};`,
    "unsigned rest = blockIdx.z;",
    ...(groups?.of === "k" ? [`const unsigned group = rest % ${groups.count}u;`, `rest /= ${groups.count}u;`] : []),
    ...batch
      .toReversed()
      .flatMap((axis, i) => [
        "{",
        `const unsigned long long index = rest % ${axis.extent}u;`,
        `rest /= ${axis.extent}u;`,
        `offsetA += index * ${axis.a}ull;`,
        `offsetB += index * ${axis.b}ull;`,
        `offsetC += index * ${axis.c}ull;`,
        ...(groups === undefined ? [] : [`offsetEnds += index * ${at(groups.ends.batch, batch.length - 1 - i)}ull;`]),
        "}",
      ]),
    `const unsigned column = threadIdx.x % ${tile}u;`,
    `const unsigned row = threadIdx.x / ${tile}u * ${rowsPerThread}u;`,
    ...(groups === undefined ? [`const unsigned firstRow = blockIdx.y * ${tile}u;`] : groupLines(contraction, groups)),
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
    `for (unsigned depth = 0; depth < ${length}; depth += ${tile}u) {`,
    "#pragma unroll",
    `for (int i = 0; i < ${rowsPerThread}; i++) {`,
    "const unsigned line = row + i;",
    "const unsigned long long x = firstRow + line, y = firstColumn + column;",
    "const unsigned long long across = depth + column, down = depth + line;",
    `left[line][column] = x < ${rows} && across < ${length} ? ${elementOfA} : ${zero};`,
    `right[line][column] = down < ${length} && y < ${n}u ? ${elementOfB} : ${zero};`,
    "}",
    "__syncthreads();",
    `for (int z = 0; z < ${tile}; z++) {`,
    "#pragma unroll",
    `for (int i = 0; i < ${rowsPerThread}; i++) sum[i] = ${multiplyAdd};`,
    "}",
    "__syncthreads();",
    // A block is whole: its sum goes to the next level, as far as that one's block is whole, too.
    ...Array.from({ length: levels - 1 }, (_, level) => {
      const terms = contractionBlock(dtype) * sumBlock ** level;
      return [
        `if ((depth + ${tile}u) % ${terms}u == 0 || depth + ${tile}u >= ${length}) {`,
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
    `if (x < ${rows} && y < ${n}u) {`,
    ...(bias === null ? [] : [`const ${scalar} offset = ${decodeElementText(dtype, `bias[y * ${bias}ull]`)};`]),
    ...(accumulate && !startsFromOutput ? [`const ${scalar} before = ${decodeElementText(dtype, before)};`] : []),
    ...(scaled === undefined || factors.length === 0
      ? []
      : [
          `const float ofRow = scaleA[x * ${scaled.a.stride}ull];`,
          `const float ofColumn = scaleB[y * ${scaled.b.stride}ull];`,
        ]),
    `${target} = ${encodeElementText(dtype, roundTo(dtype, result), [`${sumsOf(levels - 1)}[i]`, ...factors, ...added])};`,
    "}",
    "}",
    "}",
  ];
  const batches = batch.reduce((product, { extent }) => product * extent, groups?.of === "k" ? groups.count : 1);
  // A group, and the rows past the last one, may begin with a tile of its own.
  const tiles = groups?.of === "m" ? Math.floor(m / tile) + groups.count + 1 : Math.ceil(m / tile);
  return {
    text: withPrelude(`${indented(text)}\n`),
    grid: [Math.ceil(n / tile), tiles, batches],
    block: [(tile * tile) / rowsPerThread, 1, 1],
    parameters: operands,
  };
}

/**
 * Finds the block's group. Ends that fall or are past the last row end the run, and are clamped until then. The last
 * block reads all ends, because the groups have fewer tiles than there are blocks.
 */
function groupLines({ m, k, a, b }: Contraction, { of, count, stride, ends }: Groups): readonly string[] {
  const endAt = (group: string): string => `(long long)ends[offsetEnds + (${group}) * ${ends.stride}ull]`;
  const check = "if (end < start || end > limit) braid_bad_ends();";
  if (of === "k") {
    return [
      `const unsigned firstRow = blockIdx.y * ${tile}u;`,
      `const long long limit = ${k};`,
      `const long long given = group == 0 ? 0 : ${endAt("group - 1")};`,
      "const long long start = given < 0 ? 0 : given > limit ? limit : given;",
      `const long long end = ${endAt("group")};`,
      check,
      "const unsigned terms = end < start ? 0u : (unsigned)((end > limit ? limit : end) - start);",
      `offsetA += start * ${a.column}ull;`,
      `offsetB += start * ${b.row}ull;`,
      `offsetC += group * ${stride}ull;`,
    ];
  }
  return [
    `const long long limit = ${m};`,
    "long long start = 0, stop = 0;",
    "unsigned group = 0, inGroup = blockIdx.y;",
    `for (; group < ${count}u; group++) {`,
    `const long long end = ${endAt("group")};`,
    check,
    "stop = end < start ? start : end > limit ? limit : end;",
    `const unsigned tiles = (unsigned)((stop - start + ${tile - 1}) / ${tile});`,
    "if (inGroup < tiles) break;",
    "inGroup -= tiles;",
    "start = stop;",
    "}",
    `if (group == ${count}u) stop = limit;`,
    `const unsigned terms = group == ${count}u ? 0u : ${k}u;`,
    `const unsigned firstRow = (unsigned)start + inGroup * ${tile}u;`,
    "if (firstRow >= stop) return;",
    `if (terms > 0) offsetB += group * ${stride}ull;`,
  ];
}
