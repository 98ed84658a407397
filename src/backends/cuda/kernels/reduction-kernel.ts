/**
 * Kernels of a reduction. The reduced extents and the layout alone decide which threads share an element and in which
 * order its parts are added (plan/reduction-shape.ts), never the number of elements. A chunk of a tensor therefore has
 * the bits of the same elements of the whole. Threads add through shared memory. A long reduction is cut into parts
 * with their own blocks, whose accumulators a second kernel adds, in parts again if there are many. No element takes
 * part in more additions than on the CPU (numerics/sum-order.ts).
 */
import { dtypes } from "../../../numerics/dtype.ts";
import type { Affine } from "../../../kernels/nests/affine.ts";
import { iterationCount, loadsOf, type Access, type NestMemory, type Nest } from "../../../kernels/nests/nest.ts";
import type { ReductionSemantics } from "../../../ir/ops/functions/expressions.ts";
import { accumulatorDType, operand } from "../../../numerics/scalar/expression.ts";
import { invariant } from "../../../support/invariant.ts";
import { type BodyContext, loadLines, moveLines, registerLines, resultName, valueLines } from "./text/body-text.ts";
import { elementBytes, encodeElementText } from "./text/element-text.ts";
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
import { distinctParameters, kernelName, type KernelSource, type Parameter, parameterName } from "./kernel-source.ts";
import { kernelOf } from "./text/prelude.ts";
import { blockThreads, partCount, type ReductionShape, reductionShape } from "./plan/reduction-shape.ts";
import type { AlignmentOf } from "./plan/vector-width.ts";

/** Bytes of scratch for the parts of a reduction, and for the parts of these; 0 if it is not cut. */
export function partBytes(nest: Nest): number {
  const cut = cutReduction(nest, { kind: "scratch", offset: 0 });
  return cut === null ? 0 : cut.bytes + partBytes(cut.rest);
}

/** One kernel, or one for the parts and those that add them. `partsAt` is the scratch of `partBytes` bytes. */
export function reductionKernels(
  nest: Nest,
  alignmentOf: AlignmentOf,
  partsAt: Extract<NestMemory, { kind: "scratch" }>,
): readonly KernelSource[] {
  const cut = cutReduction(nest, partsAt);
  if (cut === null) return [reductionKernel(nest, alignmentOf, 1, nest.target, true)];
  const behind = { ...partsAt, offset: partsAt.offset + cut.bytes };
  return [
    reductionKernel(cut.whole, alignmentOf, cut.parts, cut.partial, false),
    ...reductionKernels(cut.rest, alignmentOf, behind),
  ];
}

interface CutReduction {
  readonly parts: number;
  /** The nest with an atom for the part, and where its accumulators go. */
  readonly whole: Nest;
  readonly partial: Access;
  readonly bytes: number;
  /** Adds the accumulators. */
  readonly rest: Nest;
}

/** Null if one part is all. */
function cutReduction(nest: Nest, partsAt: NestMemory): CutReduction | null {
  const parts = partCount(nest);
  if (parts === 1) return null;
  const whole: Nest = { ...nest, atoms: [...nest.atoms, { kind: "loop", extent: parts }] };
  const dtype = sumDType(nest);
  const partial: Access = { memory: partsAt, dtype, offset: partialOffset(whole) };
  const bytes = Math.ceil((parts * iterationCount(nest.loops) * elementBytes(dtype)) / partAlignment) * partAlignment;
  return { parts, whole, partial, bytes, rest: sumOfParts(whole, partial, parts) };
}

/** Of scratch that is read in vectors. */
const partAlignment = 64;

/** Row-major by part (the last atom), then by the kept loops, so that neighbours stay neighbours. */
function partialOffset({ loops, atoms }: Nest): Affine {
  const terms = loops.map(({ atom }, i) => ({ atom, coefficient: iterationCount(loops.slice(i + 1)) }));
  const part = { atom: atoms.length - 1, coefficient: iterationCount(loops) };
  return { constant: 0, terms: [...terms.toSorted((a, b) => a.atom - b.atom), part] };
}

/** A nest that makes the same elements from the accumulators of their parts. */
function sumOfParts(cut: Nest, partial: Access, parts: number): Nest {
  return {
    ...cut,
    reducedLoops: [{ atom: cut.atoms.length - 1, extent: parts }],
    body: [{ kind: "load", access: partial }],
  };
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
  const shape = reductionShape(nest, alignmentOf, target, parts);
  const parameters = distinctParameters([...loadsOf(nest).map(({ memory }) => memory), target.memory]);
  const nameOf = (memory: Parameter): string => parameterName(parameters, memory);
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
  const alone = shape.lanes === 1;
  const text = [
    `extern "C" __global__ void __launch_bounds__(${blockThreads}) ${kernelName}(${parametersText(nest, target, parameters, nameOf)}) {`,
    ...(alone ? [] : [`__shared__ ${accumulator} shared[${blockThreads}][${shape.keptWidth}];`]),
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
    ...(alone ? [] : addingLanes(accumulator, shape, combine)),
    `if (lane == 0 && k < ${shape.keptVectors}u) {`,
    ...loopVariables(nest.loops, "k", type, "ni", shape.keptWidth),
    ...(parts === 1 ? [] : [`const ${type} ${loopName("ni", nest.atoms.length - 1)} = blockIdx.y;`]),
    ...storeText(target, reduction, finishes, shape, nameOf),
    "}",
    "}",
  ];
  return kernelOf(text, [shape.blocks, parts, 1], blockThreads, parameters);
}

/** Adds the lanes of an element as a tree. */
function addingLanes(
  accumulator: string,
  { keptWidth, lanes, laneStride }: ReductionShape,
  combine: (left: string, right: string) => string,
): readonly string[] {
  return [
    "#pragma unroll",
    `for (int v = 0; v < ${keptWidth}; v++) shared[threadIdx.x][v] = sum[v];`,
    "#pragma unroll",
    `for (unsigned half = ${lanes / 2}u; half > 0; half /= 2) {`,
    "__syncthreads();",
    "if (lane < half) {",
    "#pragma unroll",
    `for (int v = 0; v < ${keptWidth}; v++) {`,
    `const ${accumulator} left = shared[threadIdx.x][v];`,
    `const ${accumulator} right = shared[threadIdx.x + half * ${laneStride}][v];`,
    `shared[threadIdx.x][v] = ${combine("left", "right")};`,
    "}",
    "}",
    "}",
  ];
}

function storeText(
  target: Access,
  reduction: ReductionSemantics,
  finishes: boolean,
  { keptWidth, lanes }: ReductionShape,
  nameOf: (memory: NestMemory) => string,
): readonly string[] {
  const to = `${nameOf(target.memory)} + (${affineText(target.offset, "ni")})`;
  const finish = finishes ? reduction.finish : operand(reduction.type, 0);
  return [
    `alignas(16) ${dtypes[target.dtype].cuda.c} stored[${keptWidth}];`,
    "#pragma unroll",
    `for (int v = 0; v < ${keptWidth}; v++) {`,
    `const ${scalarTypes[reduction.type]} total = ${lanes === 1 ? "sum[v]" : "shared[threadIdx.x][v]"};`,
    `stored[v] = ${encodeElementText(target.dtype, finish, ["total"])};`,
    "}",
    ...moveLines(target, to, "stored", keptWidth),
  ];
}

function parametersText(
  nest: Nest,
  target: Access,
  parameters: readonly NestMemory[],
  nameOf: (memory: NestMemory) => string,
): string {
  return parameters
    .map((memory) => {
      const written = nameOf(target.memory) === nameOf(memory);
      const dtype = written
        ? target.dtype
        : (loadsOf(nest).find((access) => nameOf(access.memory) === nameOf(memory))?.dtype ?? "bool");
      return `${written ? "" : "const "}${dtypes[dtype].cuda.c} *${nameOf(memory)}`;
    })
    .join(", ");
}

function sumDType({ reduction }: Nest): Access["dtype"] {
  invariant(reduction !== null, "a reduction has semantics");
  return accumulatorDType[reduction.type];
}
