/**
 * Kernels of a reduction. Which threads share an element, and in which order its parts are added, follows from the reduced extents and the layout
 * alone, never from how many elements there are: a chunk of a tensor has the bits of the same elements of the whole.
 *
 * Rows: memory runs along the reduced loops; `lanes` neighbouring threads take one element of the result, a vector each in turn, and add up in shared
 * memory. Columns: memory runs along the kept loops; a warp takes 32 vectors of the result, eight warps take turns over the reduced ones.
 * A long reduction is cut into parts of their own blocks, whose accumulators a second kernel adds.
 */
import { accumulatesRows } from "../../../kernels/arrange-loops.ts";
import type { Affine } from "../../../kernels/affine.ts";
import type { Access, Loop, Memory, Nest } from "../../../kernels/nest.ts";
import type { ReductionSemantics } from "../../../numerics/scalar-semantics.ts";
import { operand } from "../../../numerics/expression.ts";
import { invariant } from "../../../support/invariant.ts";
import { type BodyContext, loadLines, moveLines, registerLines, resultName, valueLines } from "./body-text.ts";
import { accumulatorDTypes, elementBytes, encodeText, storageTypes } from "./element-text.ts";
import { indented } from "./indented.ts";
import { constantText, expressionText, scalarTypes } from "./expression-text.ts";
import {
  affineText,
  divisionVariables,
  indexType,
  loopName,
  loopVariables,
  offsetType,
  widerType,
} from "./index-text.ts";
import { distinctMemories, kernelName, type KernelSource, parameterName } from "./kernel-source.ts";
import { withPrelude } from "./prelude.ts";
import { type AlignmentOf, vectorWidth } from "./vector-width.ts";

export interface ReductionPlan {
  /** One kernel, or one for the parts and one that adds them. */
  readonly kernels: readonly KernelSource[];
}

const blockThreads = 256;
const columnLanes = 32;
const columnParts = blockThreads / columnLanes;
/** Reduced elements of one part: enough to outweigh what writing and adding the parts costs. */
const rowPart = 1 << 14;
const columnPart = 1 << 9;

/** Bytes of scratch that the parts of a reduction need; 0 where it is not cut. */
export function partBytes(nest: Nest): number {
  const parts = partCount(nest);
  return parts === 1 ? 0 : parts * count(nest.loops) * elementBytes(accumulatorDType(nest));
}

/** `partsAt` is the scratch of `partBytes` bytes. */
export function reductionKernels(nest: Nest, alignmentOf: AlignmentOf, partsAt: Memory): ReductionPlan {
  const parts = partCount(nest);
  if (parts === 1) return { kernels: [reductionKernel(nest, alignmentOf, 1, nest.target, true)] };
  const cut: Nest = { ...nest, atoms: [...nest.atoms, { kind: "loop", extent: parts }] };
  const partial: Access = { memory: partsAt, dtype: accumulatorDType(nest), offset: partialOffset(cut) };
  return {
    kernels: [
      reductionKernel(cut, alignmentOf, parts, partial, false),
      reductionKernel(sumOfParts(cut, partial, parts), alignmentOf, 1, nest.target, true),
    ],
  };
}

/** Row-major by part, the last atom, and then by the kept loops, so that neighbours stay neighbours. */
function partialOffset({ loops, atoms }: Nest): Affine {
  const terms = loops.map(({ atom }, i) => ({ atom, coefficient: count(loops.slice(i + 1)) }));
  const part = { atom: atoms.length - 1, coefficient: count(loops) };
  return { constant: 0, terms: [...terms.toSorted((a, b) => a.atom - b.atom), part] };
}

/** The same elements from the accumulators of their parts. */
function sumOfParts(cut: Nest, partial: Access, parts: number): Nest {
  return {
    ...cut,
    reducedLoops: [{ atom: cut.atoms.length - 1, extent: parts }],
    body: [{ kind: "load", access: partial }],
  };
}

/** By the reduced extents and the layout alone. */
function partCount(nest: Nest): number {
  const reduced = count(nest.reducedLoops);
  return Math.ceil(reduced / (accumulatesRows(nest) ? columnPart : rowPart));
}

function reductionKernel(
  nest: Nest,
  alignmentOf: AlignmentOf,
  parts: number,
  target: Access,
  finishes: boolean,
): KernelSource {
  const { reduction } = nest;
  invariant(reduction !== null, "a reduction kernel is made of a reduction");
  const shape = accumulatesRows(nest) ? columnShape(nest, alignmentOf, target) : rowShape(nest, alignmentOf, parts);
  const parameters = distinctMemories([...loadsOf(nest).map(({ memory }) => memory), target.memory]);
  const nameOf = (memory: Memory): string => parameterName(parameters, memory);
  const type = widerType([
    indexType(Math.max(shape.keptVectors, shape.reducedVectors) + blockThreads * parts),
    offsetType([...loadsOf(nest), target], nest.atoms),
  ]);
  const context: BodyContext = {
    nest,
    prefix: "n",
    loop: shape.vectorLoop,
    width: shape.width,
    nameOf,
    offsetType: type,
    given: new Map(),
  };
  const accumulator = scalarTypes[reduction.type];
  const combine = (left: string, right: string): string => expressionText(reduction.combine, [left, right]);
  const { width } = shape;
  const text = [
    `extern "C" __global__ void __launch_bounds__(${blockThreads}) ${kernelName}(${parametersText(nest, target, parameters, nameOf)}) {`,
    `__shared__ ${accumulator} shared[${blockThreads}][${shape.keptWidth}];`,
    `const unsigned lane = ${shape.lane};`,
    `const ${type} k = ${shape.kept(type)};`,
    `${accumulator} sum[${width}];`,
    "#pragma unroll",
    `for (int v = 0; v < ${width}; v++) sum[v] = ${constantText(reduction.type, reduction.identity)};`,
    `if (k < ${shape.keptVectors}u) {`,
    ...loopVariables(nest.loops, "k", type, "ni", shape.keptWidth),
    `const ${type} end = ${parts === 1 ? `${shape.reducedVectors}u` : `min((${type})(blockIdx.y + 1) * ${Math.ceil(shape.reducedVectors / parts)}u, (${type})${shape.reducedVectors}u)`};`,
    "#pragma unroll 4",
    `for (${type} r = ${parts === 1 ? "lane" : `(${type})blockIdx.y * ${Math.ceil(shape.reducedVectors / parts)}u + lane`}; r < end; r += ${shape.lanes}u) {`,
    ...loopVariables(nest.reducedLoops, "r", type, "ni", shape.reducedWidth),
    ...divisionVariables(nest.atoms, type, "ni"),
    ...registerLines(context, 1),
    ...loadLines(context, "0"),
    "#pragma unroll",
    `for (int v = 0; v < ${width}; v++) {`,
    ...valueLines(context, "0", "v"),
    `sum[v] = ${combine("sum[v]", resultName(context))};`,
    "}",
    "}",
    "}",
    ...(shape.keptWidth === 1
      ? ["#pragma unroll", `for (int v = 1; v < ${width}; v++) sum[0] = ${combine("sum[0]", "sum[v]")};`]
      : []),
    "#pragma unroll",
    `for (int v = 0; v < ${shape.keptWidth}; v++) shared[threadIdx.x][v] = sum[v];`,
    "#pragma unroll",
    `for (unsigned half = ${Math.floor(shape.lanes / 2)}u; half > 0; half /= 2) {`,
    "__syncthreads();",
    "if (lane < half) {",
    "#pragma unroll",
    `for (int v = 0; v < ${shape.keptWidth}; v++) {`,
    `const ${accumulator} left = shared[threadIdx.x][v];`,
    `const ${accumulator} right = shared[threadIdx.x + half * ${shape.laneStride}][v];`,
    `shared[threadIdx.x][v] = ${combine("left", "right")};`,
    "}",
    "}",
    "}",
    `if (lane == 0 && k < ${shape.keptVectors}u) {`,
    ...loopVariables(nest.loops, "k", type, "ni", shape.keptWidth),
    ...(parts === 1 ? [] : [`const ${type} ${loopName("ni", nest.atoms.length - 1)} = blockIdx.y;`]),
    ...storeText(target, reduction, finishes, shape, nameOf),
    "}",
    "}",
  ];
  return {
    text: withPrelude(`${indented(text)}\n`),
    grid: [shape.blocks, parts, 1],
    block: [blockThreads, 1, 1],
    parameters,
  };
}

/** Who takes what. A vector is of `keptWidth` kept and `reducedWidth` reduced elements, of which one is 1. */
interface Shape {
  readonly width: number;
  readonly keptWidth: number;
  readonly reducedWidth: number;
  readonly vectorLoop: Loop | undefined;
  readonly keptVectors: number;
  readonly reducedVectors: number;
  /** Threads that share one kept vector, a power of two, and how far apart they are in the block. */
  readonly lanes: number;
  readonly laneStride: number;
  readonly lane: string;
  readonly kept: (type: string) => string;
  readonly blocks: number;
}

function rowShape(nest: Nest, alignmentOf: AlignmentOf, parts: number): Shape {
  const vectorLoop = nest.reducedLoops.at(-1);
  const width = vectorWidth(loadsOf(nest), [], nest.atoms, vectorLoop, alignmentOf);
  const reducedVectors = count(nest.reducedLoops) / width;
  const keptVectors = count(nest.loops);
  // Widths depend on alignment, which may differ between chunks; lanes do not.
  const lanes = Math.min(blockThreads, powerOfTwoAtLeast(Math.ceil(count(nest.reducedLoops) / parts / 32)));
  const rows = blockThreads / lanes;
  return {
    width,
    keptWidth: 1,
    reducedWidth: width,
    vectorLoop,
    keptVectors,
    reducedVectors,
    lanes,
    laneStride: 1,
    lane: `threadIdx.x % ${lanes}u`,
    kept: (type) => `(${type})blockIdx.x * ${rows}u + threadIdx.x / ${lanes}u`,
    blocks: Math.ceil(keptVectors / rows),
  };
}

function columnShape(nest: Nest, alignmentOf: AlignmentOf, target: Access): Shape {
  const vectorLoop = nest.loops.at(-1);
  const width = vectorWidth(loadsOf(nest), [target], nest.atoms, vectorLoop, alignmentOf);
  const keptVectors = count(nest.loops) / width;
  return {
    width,
    keptWidth: width,
    reducedWidth: 1,
    vectorLoop,
    keptVectors,
    reducedVectors: count(nest.reducedLoops),
    lanes: columnParts,
    laneStride: columnLanes,
    lane: `threadIdx.x / ${columnLanes}u`,
    kept: (type) => `(${type})blockIdx.x * ${columnLanes}u + threadIdx.x % ${columnLanes}u`,
    blocks: Math.ceil(keptVectors / columnLanes),
  };
}

function storeText(
  target: Access,
  reduction: ReductionSemantics,
  finishes: boolean,
  { keptWidth }: Shape,
  nameOf: (memory: Memory) => string,
): readonly string[] {
  const to = `${nameOf(target.memory)} + (${affineText(target.offset, "ni")})`;
  const finish = finishes ? reduction.finish : operand(reduction.type, 0);
  return [
    `alignas(16) ${storageTypes[target.dtype]} stored[${keptWidth}];`,
    "#pragma unroll",
    `for (int v = 0; v < ${keptWidth}; v++) {`,
    `const ${scalarTypes[reduction.type]} total = shared[threadIdx.x][v];`,
    `stored[v] = ${encodeText(target.dtype, finish, ["total"])};`,
    "}",
    ...moveLines(target, to, "stored", keptWidth),
  ];
}

function parametersText(
  nest: Nest,
  target: Access,
  parameters: readonly Memory[],
  nameOf: (memory: Memory) => string,
): string {
  return parameters
    .map((memory) => {
      const written = nameOf(target.memory) === nameOf(memory);
      const dtype = written
        ? target.dtype
        : (loadsOf(nest).find((access) => nameOf(access.memory) === nameOf(memory))?.dtype ?? "bool");
      return `${written ? "" : "const "}${storageTypes[dtype]} *${nameOf(memory)}`;
    })
    .join(", ");
}

function accumulatorDType({ reduction }: Nest): Access["dtype"] {
  invariant(reduction !== null, "a reduction has semantics");
  return accumulatorDTypes[reduction.type];
}

function loadsOf(nest: Nest): readonly Access[] {
  return nest.body.flatMap((instruction) => (instruction.kind === "load" ? [instruction.access] : []));
}

function count(loops: readonly Loop[]): number {
  return loops.reduce((product, { extent }) => product * extent, 1);
}

function powerOfTwoAtLeast(value: number): number {
  return 2 ** Math.max(0, Math.ceil(Math.log2(value)));
}
