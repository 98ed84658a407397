/**
 * The kernels of nests that go along an axis in order: scatterAdd, scans and sorts. Every run gives the same bits.
 */
import { coefficientOf, constantIndex, lastNeeded, loopsBehind } from "../../../kernels/nests/affine.ts";
import { accumulatesRows } from "../../../kernels/nests/arrange-loops.ts";
import {
  type Access,
  nestAccesses,
  iterationCount,
  type Nest,
  type NestMemory,
  type Ordered,
} from "../../../kernels/nests/nest.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at, invariant, unreachable } from "../../../support/invariant.ts";
import { kernelName, type KernelSource, type Parameter, parameterName } from "./kernel-source.ts";
import {
  type BodyContext,
  declaredIndices,
  loadsBetween,
  registerLines,
  resultName,
  valueLines,
  valueName,
} from "./text/body-text.ts";
import { decodeElementText, encodeElementText } from "./text/element-text.ts";
import { constantText, expressionText, scalarTypes } from "./text/expression-text.ts";
import {
  affineText,
  divisionVariables,
  indexType,
  loopName,
  loopVariables,
  offsetType,
  widerType,
} from "./text/index-text.ts";
import { kernelOf } from "./text/prelude.ts";
import { parametersOf, parametersText } from "./text/result-text.ts";

const blockThreads = 256;
/** Threads that keep memory busy. Each range of places costs a look at all indices. */
const manyThreads = 1 << 18;
const mostRanges = 256;
/** From here on, a thread for each column keeps memory busy. */
const manyColumns = 1 << 13;
/** How often a warp looks at 32 indices before it adds. */
const looks = 4;

/** One kernel, or two for rows that a block does not sort. `partsAt` is the scratch of `sortBytes` bytes. */
export function orderedKernels(nest: Nest, partsAt: NestMemory): readonly KernelSource[] {
  const { ordered } = nest;
  invariant(ordered !== undefined, "an ordered kernel is made of an ordered nest");
  switch (ordered.kind) {
    case "scatter":
      return [scatterKernel(nest, ordered)];
    case "scan":
      return [scanKernel(nest, ordered)];
    case "sort":
      return sortKernels(nest, ordered.descending, partsAt);
    default:
      return unreachable(ordered);
  }
}

/** What the kernels share: `threads` may count past the last column, or the last iteration along the axis. */
interface OrderedForm {
  readonly columns: number;
  readonly length: number;
  readonly type: string;
  readonly context: BodyContext;
  readonly parameters: readonly Parameter[];
  /** The element that is written. */
  readonly to: string;
  readonly signature: (threads: number) => string;
}

/** `read`: what the kernel reads besides the nest. */
function formOf(nest: Nest, threads: number, read: readonly Access[] = []): OrderedForm {
  const given = new Map<number, number>();
  const group = [
    { nest, given, stores: true },
    ...read.map((access) => ({ nest: { ...nest, body: [{ kind: "load", access } as const] }, given, stores: false })),
  ];
  const parameters = parametersOf(group);
  const nameOf = (parameter: Parameter): string => parameterName(parameters, parameter);
  const [columns, length] = [iterationCount(nest.loops), iterationCount(nest.reducedLoops)];
  const type = widerType([
    indexType(columns + threads),
    indexType(length + threads),
    offsetType(nestAccesses(nest), nest.atoms),
  ]);
  const context: BodyContext = {
    nest,
    prefix: "n",
    loop: undefined,
    width: 1,
    nameOf,
    offsetType: type,
    given: new Map(),
  };
  const to = `${nameOf(nest.target.memory)}[${affineText(nest.target.offset, "ni")}]`;
  const list = parametersText(group, parameters, nameOf);
  const signature = (bounds: number): string =>
    `extern "C" __global__ void __launch_bounds__(${bounds}) ${kernelName}(${list}) {`;
  return { columns, length, type, context, parameters, to, signature };
}

/** The value of the nest at iteration `r` along the axis, as the last of the lines' variables. */
function valueAt({ type, context }: OrderedForm, r: string, declared = new Set<number>()): readonly string[] {
  const { nest } = context;
  return [
    ...loopVariables(nest.reducedLoops, r, type, "ni"),
    ...divisionVariables(nest.atoms, type, "ni"),
    ...registerLines(context, 1),
    ...loadsBetween(context, "0", 0, nest.body.length, declared),
    ...valueLines(context, "0", "0"),
  ];
}

/**
 * Warps take 32 elements of a column each at a time, and add those before each by shuffles and by the warps' sums.
 * Where memory is contiguous across many columns, a thread takes a column.
 */
function scanKernel(nest: Nest, { semantics, reverse }: Extract<Ordered, { kind: "scan" }>): KernelSource {
  const { columns, length } = formOf(nest, blockThreads);
  const byThread = accumulatesRows(nest) && columns >= manyColumns;
  let warps = 1;
  if (!byThread) while (warps < 32 && 64 * warps <= length && 64 * warps * columns <= manyThreads) warps *= 2;
  const lanes = byThread ? 1 : 32 * warps;
  const block = Math.max(blockThreads, lanes);
  const form = formOf(nest, block);
  const { type, context, parameters, to, signature } = form;
  const accumulator = scalarTypes[semantics.type];
  const combine = (left: string, right: string): string => expressionText(semantics.combine, [left, right]);
  const stored = `${to} = ${encodeElementText(nest.target.dtype, semantics.finish, ["part"])};`;
  const ofWarp = [
    `${accumulator} part = r < ${length}u ? ${resultName(context)} : ${constantText(semantics.type, semantics.identity)};`,
    "#pragma unroll",
    "for (unsigned by = 1; by < 32u; by *= 2) {",
    `const ${accumulator} other = __shfl_up_sync(0xffffffffu, part, by);`,
    `if (lane >= by) part = ${combine("other", "part")};`,
    "}",
  ];
  const addSums =
    warps === 1
      ? [`part = ${combine("sum", "part")};`, "sum = __shfl_sync(0xffffffffu, part, 31);"]
      : [
          "if (lane == 31u) sums[warp] = part;",
          "__syncthreads();",
          `${accumulator} before = sum;`,
          `for (unsigned w = 0; w < ${warps}u; w++) {`,
          `if (w == warp % ${warps}u) before = sum;`,
          `sum = ${combine("sum", `sums[warp / ${warps}u * ${warps}u + w]`)};`,
          "}",
          "__syncthreads();",
          `part = ${combine("before", "part")};`,
        ];
  const own = byThread
    ? [`sum = ${combine("sum", resultName(context))};`, `const ${accumulator} part = sum;`, stored]
    : [...ofWarp, ...addSums, `if (r < ${length}u${warps === 1 ? "" : " && isOwn"}) ${stored}`];
  const column = `(${type})blockIdx.x * ${block / lanes}u + threadIdx.x / ${lanes}u`;
  const place = byThread ? "r" : `min(r, (${type})${length - 1}u)`;
  const text = [
    signature(block),
    ...(warps === 1
      ? [`const ${type} k = ${column};`, `if (k >= ${columns}u) return;`]
      : [
          `__shared__ ${accumulator} sums[${block / 32}];`,
          `const bool isOwn = ${column} < ${columns}u;`,
          `const ${type} k = min(${column}, (${type})${columns - 1}u);`,
          "const unsigned warp = threadIdx.x / 32u;",
        ]),
    ...(byThread ? [] : ["const unsigned lane = threadIdx.x % 32u;"]),
    ...loopVariables(nest.loops, "k", type, "ni"),
    `${accumulator} sum = ${constantText(semantics.type, semantics.identity)};`,
    `for (${type} base = 0; base < ${length}u; base += ${lanes}u) {`,
    `const ${type} r = base${byThread ? "" : ` + threadIdx.x % ${lanes}u`};`,
    `const ${type} i = ${reverse ? `${length - 1}u - ${place}` : place};`,
    ...valueAt(form, "i"),
    ...own,
    "}",
    "}",
  ];
  return kernelOf(text, [Math.ceil((columns * lanes) / block), 1, 1], block, parameters);
}

/** Elements that a block sorts in shared memory: 12 bytes each. */
const mostSorted = 4096;

/** Bytes of scratch for the parts of a sort; 0 if a block sorts the whole. */
export function sortBytes({ ordered, loops, reducedLoops }: Nest): number {
  const length = iterationCount(reducedLoops);
  return ordered?.kind !== "sort" || length <= mostSorted ? 0 : 4 * iterationCount(loops) * length;
}

/**
 * A block sorts the positions of a column in shared memory, by a bitonic network whose exchanges all put the smaller
 * element first: elements past the end would be the largest, and stay. Equal elements compare by position. Of a longer
 * column, blocks sort parts, and a second kernel adds up by binary search how many elements of each part come before an
 * element: that is its place.
 */
function sortKernels(nest: Nest, descending: boolean, partsAt: NestMemory): readonly KernelSource[] {
  const length = iterationCount(nest.reducedLoops);
  const target = { memory: partsAt, dtype: "int", offset: constantIndex(0) } as const;
  if (length <= mostSorted) return [sortKernel(nest, descending, 1)];
  return [
    sortKernel({ ...nest, target }, descending, Math.ceil(length / mostSorted)),
    placeKernel(nest, descending, target),
  ];
}

function sortKernel(nest: Nest, descending: boolean, parts: number): KernelSource {
  const length = iterationCount(nest.reducedLoops);
  const sorted = Math.min(mostSorted, 2 ** Math.ceil(Math.log2(Math.max(2, length))));
  const threads = Math.min(1024, Math.max(32, sorted / 2));
  const form = formOf(nest, length + mostSorted);
  const { columns, type, parameters, to, signature } = form;
  // Pairs (a, b) with a < b.
  const exchange = (a: string, b: string): readonly string[] => [
    `for (${type} i = threadIdx.x; i < ${sorted / 2}u; i += ${threads}u) {`,
    `const ${type} a = ${a};`,
    `const ${type} b = ${b};`,
    "if (b < count && isBefore(keys[b], places[b], keys[a], places[a])) {",
    "const Key key = keys[a];",
    "const unsigned place = places[a];",
    "keys[a] = keys[b];",
    "places[a] = places[b];",
    "keys[b] = key;",
    "places[b] = place;",
    "}",
    "}",
    "__syncthreads();",
  ];
  const first = parts === 1 ? "0" : `(${type})blockIdx.y * ${sorted}u`;
  const stored =
    parts === 1
      ? [...rowLines(form), storeLoop(`row[i * ${strideOf(nest)}u]`)]
      : [`int *const row = &${to} + (k * (${type})${length}u + first);`, storeLoop("row[i]")];
  const text = [
    signature(threads),
    `const ${type} k = blockIdx.x;`,
    ...compareLines(form, descending),
    "using Key = decltype(keyOf(0));",
    `__shared__ Key keys[${sorted}];`,
    `__shared__ unsigned places[${sorted}];`,
    `const ${type} first = ${first};`,
    `const ${type} count = min((${type})${sorted}u, ${length}u - first);`,
    `for (${type} i = threadIdx.x; i < count; i += ${threads}u) {`,
    "keys[i] = keyOf(first + i);",
    "places[i] = first + i;",
    "}",
    "__syncthreads();",
    `for (${type} size = 2; size <= ${sorted}u; size *= 2) {`,
    ...exchange("i / (size / 2) * size + i % (size / 2)", "i / (size / 2) * size + size - 1 - i % (size / 2)"),
    `for (${type} half = size / 4; half > 0; half /= 2) {`,
    ...exchange("i / half * 2 * half + i % half", "a + half"),
    "}",
    "}",
    ...stored,
    "}",
  ];
  return kernelOf(text, [columns, parts, 1], threads, parameters);

  function storeLoop(place: string): string {
    return `for (${type} i = threadIdx.x; i < count; i += ${threads}u) ${place} = places[i];`;
  }
}

/** A thread takes an element of a sorted part to its place in the whole. */
function placeKernel(nest: Nest, descending: boolean, parts: Access): KernelSource {
  const length = iterationCount(nest.reducedLoops);
  const form = formOf(nest, iterationCount(nest.loops) * length + blockThreads, [parts]);
  const { columns, type, context, parameters, signature } = form;
  const elements = columns * length;
  const text = [
    signature(blockThreads),
    `const ${type} t = (${type})blockIdx.x * ${blockThreads}u + threadIdx.x;`,
    `if (t >= ${elements}u) return;`,
    `const ${type} k = t / ${length}u;`,
    `const ${type} own = t % ${length}u;`,
    ...compareLines(form, descending),
    `const int *const sorted = ${context.nameOf(parts.memory)} + (t - own);`,
    "const unsigned place = sorted[own];",
    "const auto key = keyOf(place);",
    `${type} rank = own % ${mostSorted}u;`,
    `for (${type} first = 0; first < ${length}u; first += ${mostSorted}u) {`,
    `if (first == own - own % ${mostSorted}u) continue;`,
    `${type} low = first;`,
    `${type} high = min(first + ${mostSorted}u, (${type})${length}u);`,
    "while (low < high) {",
    `const ${type} middle = low + (high - low) / 2;`,
    "const unsigned other = sorted[middle];",
    "if (isBefore(keyOf(other), other, key, place)) low = middle + 1;",
    "else high = middle;",
    "}",
    "rank += low - first;",
    "}",
    ...rowLines(form),
    `row[rank * ${strideOf(nest)}u] = place;`,
    "}",
  ];
  return kernelOf(text, [Math.ceil(elements / blockThreads), 1, 1], blockThreads, parameters);
}

/** The key at a position, and the order of keys and, if they are equal, of positions. */
function compareLines(form: OrderedForm, descending: boolean): readonly string[] {
  const { type, context } = form;
  const [first, second] = descending ? ["v", "u"] : ["u", "v"];
  return [
    ...loopVariables(context.nest.loops, "k", type, "ni"),
    "const auto keyOf = [&](long long position) {",
    // Where the axis has several loops, their variables have names that begin with this one.
    `const ${type} place = (${type})position;`,
    ...valueAt(form, "place"),
    `return ${resultName(context)};`,
    "};",
    // NaN is the only value that differs from itself.
    "const auto isBefore = [](auto u, unsigned x, auto v, unsigned y) {",
    `if (${first} < ${second} || (${first} == ${first} && ${second} != ${second})) return true;`,
    `if (${second} < ${first} || (${second} == ${second} && ${first} != ${first})) return false;`,
    "return x < y;",
    "};",
  ];
}

/** The first element of the row that is written. */
function rowLines({ type, context: { nest }, to }: OrderedForm): readonly string[] {
  const loops = nest.reducedLoops.map(({ atom }) => `const ${type} ${loopName("ni", atom)} = 0;`);
  return [...loops, `long long *const row = &${to};`];
}

function strideOf({ reducedLoops, target }: Nest): number {
  const inner = reducedLoops.at(-1);
  return inner === undefined ? 1 : coefficientOf(target.offset, inner.atom);
}

/** Integers are added in any order: a thread adds one element, atomically. */
function addKernel(nest: Nest, threads: number): KernelSource {
  const form = formOf(nest, blockThreads);
  const { columns, type, context, parameters, to, signature } = form;
  const { dtype } = nest.target;
  const atomicType = dtypes[dtype].bytes === 8 ? "unsigned long long" : "unsigned";
  const wide = widerType([type, indexType(threads + blockThreads)]);
  const declared = new Set<number>();
  const text = [
    signature(blockThreads),
    `const ${wide} t = (${wide})blockIdx.x * ${blockThreads}u + threadIdx.x;`,
    `if (t >= ${threads}u) return;`,
    `const ${type} k = t % ${columns}u;`,
    ...loopVariables(nest.loops, "k", type, "ni"),
    `const ${type} r = t / ${columns}u;`,
    ...valueAt(form, "r", declared),
    ...declaredIndices(context, nest.target, "0", declared),
    `if (${resultName(context)} != 0) atomicAdd((${atomicType} *)&${to}, (${atomicType})${resultName(context)});`,
    "}",
  ];
  return kernelOf(text, [Math.ceil(threads / blockThreads), 1, 1], blockThreads, parameters);
}

/**
 * A thread has an index of the axes beside the scattered one and a range of places along that. It reads all indices in
 * order, and adds those in its range. No other thread adds to its elements. Where all columns have the same indices,
 * the lanes of a warp look at 32 of them at once.
 */
function scatterKernel(nest: Nest, { combine, sums, below }: Extract<Ordered, { kind: "scatter" }>): KernelSource {
  const { target } = nest;
  const { columns, length, type, context, parameters, to, signature } = formOf(nest, blockThreads);
  if (sums && dtypes[target.dtype].family === "integer") return addKernel(nest, columns * length);
  const scattered = target.offset.terms.find(({ atom }) => at(nest.atoms, atom).kind === "loaded")?.atom ?? null;
  const loaded = scattered === null ? 0 : lastNeeded(nest.atoms, scattered) + 1;
  const { places, ranges } = rangesOf(nest, scattered, columns);
  const behind = scattered === null ? [] : loopsBehind(nest.atoms, scattered);
  const isCommon = ranges > 1 && !nest.loops.some(({ atom }) => behind.includes(atom));
  const threads = isCommon ? Math.min(blockThreads, 32 * Math.ceil(columns / 32)) : blockThreads;
  const inRange = `${loopName("ni", scattered ?? 0)} - (${type})blockIdx.y * ${places}u < ${places}u`;
  /** The place of element `r`, and all that is loaded before it. */
  const placeLines = (declared: Set<number>): readonly string[] => [
    ...loopVariables(nest.reducedLoops, "r", type, "ni"),
    ...divisionVariables(nest.atoms, type, "ni"),
    ...registerLines(context, 1),
    ...loadsBetween(context, "0", 0, loaded, declared),
    ...declaredIndices(context, target, "0", declared),
  ];
  const declared = new Set<number>();
  const element = [
    ...placeLines(declared),
    ...(isCommon || ranges === 1 ? [] : [`if (!(${inRange})) continue;`]),
    ...loadsBetween(context, "0", loaded, nest.body.length, declared),
    ...valueLines(context, "0", "0"),
    ...(below === undefined
      ? []
      : [`if (${valueName(context, below.instruction)} >= ${below.extent}) braid_past_end();`]),
    `const auto sum = ${decodeElementText(target.dtype, to)};`,
    `${to} = ${encodeElementText(target.dtype, combine, ["sum", resultName(context)])};`,
  ];
  const column = `const ${type} k = (${type})blockIdx.x * ${threads}u + threadIdx.x;`;
  const alone = [
    column,
    `if (k >= ${columns}u) return;`,
    ...loopVariables(nest.loops, "k", type, "ni"),
    "#pragma unroll 4",
    `for (${type} r = 0; r < ${length}u; r++) {`,
    ...element,
    "}",
  ];
  const together = [
    column,
    `const ${type} own = min(k, (${type})${columns - 1}u);`,
    ...loopVariables(nest.loops, "own", type, "ni"),
    `for (${type} base = 0; base < ${length}u; base += ${32 * looks}u) {`,
    `unsigned hits[${looks}];`,
    "#pragma unroll",
    `for (unsigned look = 0; look < ${looks}u; look++) {`,
    `const ${type} place = base + look * 32u + threadIdx.x % 32u;`,
    `const ${type} r = min(place, (${type})${length - 1}u);`,
    ...placeLines(new Set()),
    `hits[look] = __ballot_sync(0xffffffffu, place < ${length}u && ${inRange});`,
    "}",
    `if (k >= ${columns}u) continue;`,
    "#pragma unroll",
    `for (unsigned look = 0; look < ${looks}u; look++) {`,
    "for (unsigned left = hits[look]; left != 0; left &= left - 1) {",
    `const ${type} r = base + look * 32u + __ffs(left) - 1;`,
    ...element,
    "}",
    "}",
    "}",
  ];
  const text = [signature(threads), ...(isCommon ? together : alone), "}"];
  return kernelOf(text, [Math.ceil(columns / threads), ranges, 1], threads, parameters);
}

/** How many places a thread adds to, and how many ranges of them there are. */
function rangesOf(
  { atoms }: Nest,
  scattered: number | null,
  columns: number,
): { readonly places: number; readonly ranges: number } {
  const extent = scattered === null ? 1 : at(atoms, scattered).extent;
  const wanted = Math.min(mostRanges, extent, Math.max(1, Math.floor(manyThreads / columns)));
  const places = Math.ceil(extent / wanted);
  return { places, ranges: Math.ceil(extent / places) };
}
