/**
 * The kernel of a group of nests without reductions. A thread takes vectors of neighbouring elements, several of them a
 * block apart, so that enough bytes are in flight to keep memory busy.
 *
 *     add of two bfloat16 tensors -> per thread 4 x (2 loads of 16 bytes), 32 float additions, 4 stores of 16 bytes
 */
import { nestAccesses } from "../../../kernels/nests/nest.ts";
import { at } from "../../../support/invariant.ts";
import { type BodyContext, loadLines, registerLines } from "./text/body-text.ts";
import { elementBytes } from "./text/element-text.ts";
import { divisionVariables, indexType, loopVariables, offsetType, widerType } from "./text/index-text.ts";
import { kernelName, type KernelSource, type Parameter, parameterName } from "./kernel-source.ts";
import type { GroupedNest } from "./plan/nest-groups.ts";
import { kernelOf } from "./text/prelude.ts";
import { parametersOf, parametersText, resultLines } from "./text/result-text.ts";
import { type AlignmentOf, indexForm, vectorWidth } from "./plan/vector-width.ts";

const blockThreads = 256;
/** Vectors per thread, if there are enough threads without it. */
const vectorsPerThread = 4;
const manyVectors = 1 << 19;

/** All nests of `group` loop over the same extents. */
export function elementwiseKernel(group: readonly GroupedNest[], alignmentOf: AlignmentOf): KernelSource {
  const { width, vectors } = vectorsOf(group, alignmentOf);
  const copies = vectors >= manyVectors ? vectorsPerThread : 1;
  const blockVectors = blockThreads * copies;
  const { parameters, parameterText, type, lines } = elementwiseBody(group, {
    width,
    vectors,
    copies,
    stride: blockThreads,
    most: vectors + blockVectors,
  });
  const text = [
    `extern "C" __global__ void __launch_bounds__(${blockThreads}) ${kernelName}(${parameterText}) {`,
    `const ${type} first = (${type})blockIdx.x * ${blockVectors}u + threadIdx.x;`,
    ...lines,
    "}",
  ];
  return kernelOf(text, [Math.ceil(vectors / blockVectors), 1, 1], blockThreads, parameters);
}

export interface Vectors {
  /** Elements per vector, and the number of vectors. */
  readonly width: number;
  readonly vectors: number;
}

/** `bytes` is the size of the narrowest access of a vector. */
export function vectorsOf(
  group: readonly GroupedNest[],
  alignmentOf: AlignmentOf,
): Vectors & { readonly bytes: number } {
  const nests = group.map(({ nest }) => nest);
  const total = at(nests, 0).loops.reduce((product, { extent }) => product * extent, 1);
  const smallest = Math.min(...nests.flatMap(nestAccesses).map(({ dtype }) => elementBytes(dtype)));
  const width = Math.min(...group.map((grouped) => widthOf(grouped, alignmentOf, smallest)));
  return { width, vectors: total / width, bytes: width * smallest };
}

export interface ElementwiseForm extends Vectors {
  /** Vectors that a thread takes at once: `first`, and the others `stride` apart. */
  readonly copies: number;
  readonly stride: number;
  /** The largest vector number that is computed. */
  readonly most: number;
}

export interface ElementwiseBody {
  readonly parameters: readonly Parameter[];
  readonly parameterText: string;
  /** The type of vector numbers. */
  readonly type: string;
  /** A thread's work on its vectors; the first one is `first`. */
  readonly lines: readonly string[];
}

export function elementwiseBody(group: readonly GroupedNest[], form: ElementwiseForm): ElementwiseBody {
  const { width, vectors, copies, stride, most } = form;
  const nests = group.map(({ nest }) => nest);
  const parameters = parametersOf(group);
  const nameOf = (memory: Parameter): string => parameterName(parameters, memory);
  const type = widerType([indexType(most), ...nests.map((nest) => offsetType(nestAccesses(nest), nest.atoms))]);
  const contexts = group.map(({ nest, given }, i): BodyContext => ({
    nest,
    prefix: `n${i}`,
    loop: nest.loops.at(-1),
    width,
    nameOf,
    offsetType: type,
    given: new Map([...given].map(([instruction, source]) => [instruction, `n${source}result`])),
  }));
  const variables = (context: BodyContext): readonly string[] => [
    ...loopVariables(context.nest.loops, "t", type, `${context.prefix}i`, width).map((line) => renamed(line, context)),
    ...divisionVariables(context.nest.atoms, type, `${context.prefix}i`),
  ];
  const lines = [
    ...contexts.flatMap((context) => registerLines(context, copies)),
    "#pragma unroll",
    `for (int u = 0; u < ${copies}; u++) {`,
    `const ${type} t = first + u * ${stride}u;`,
    `if (t >= ${vectors}u) break;`,
    ...contexts.flatMap((context) => [...variables(context), ...loadLines(context, "u")]),
    "}",
    "#pragma unroll",
    `for (int u = 0; u < ${copies}; u++) {`,
    `const ${type} t = first + u * ${stride}u;`,
    `if (t >= ${vectors}u) break;`,
    ...contexts.flatMap((context, i) => (at(group, i).stores ? variables(context) : [])),
    ...resultLines(group, contexts, width),
    "}",
  ];
  return { parameters, parameterText: parametersText(group, parameters, nameOf), type, lines };
}

function widthOf({ nest, given }: GroupedNest, alignmentOf: AlignmentOf, smallest: number): number {
  const loads = nest.body.flatMap((step, i) => (step.kind === "load" && !given.has(i) ? [step.access] : []));
  const loop = nest.loops.at(-1);
  const isDivided = nest.body.some(
    (step) => step.kind === "index" && loop !== undefined && indexForm(step.index, nest.atoms, loop) === "divided",
  );
  return isDivided ? 1 : vectorWidth(loads, [nest.target], nest.atoms, loop, alignmentOf, smallest);
}

/** Gives intermediate quotients of the thread's number a prefix, so that each nest has its own. */
function renamed(line: string, { prefix }: BodyContext): string {
  return line.replaceAll(/\bt_(\d+)\b/g, `${prefix}t_$1`);
}
