/**
 * The kernel of a group of nests without reductions: a thread takes a vector of neighbouring elements, and several of them a block apart, so that enough
 * bytes are in flight to keep the memory busy.
 *
 *     add of two bfloat16 tensors -> per thread 4 x (2 loads of 16 bytes), 32 float additions, 4 stores of 16 bytes
 */
import type { Memory } from "../../../kernels/nest.ts";
import { at } from "../../../support/invariant.ts";
import { type BodyContext, loadLines, registerLines } from "./body-text.ts";
import { elementBytes } from "./element-text.ts";
import { indented } from "./indented.ts";
import { divisionVariables, indexType, loopVariables, offsetType, widerType } from "./index-text.ts";
import { kernelName, type KernelSource, parameterName } from "./kernel-source.ts";
import type { GroupedNest } from "./nest-groups.ts";
import { withPrelude } from "./prelude.ts";
import { accessesOf, parametersOf, parametersText, resultLines } from "./result-text.ts";
import { type AlignmentOf, vectorWidth } from "./vector-width.ts";

const blockThreads = 256;
/** Vectors per thread once there are enough threads without it. */
const vectorsPerThread = 4;
const manyVectors = 1 << 19;

/** All nests of `group` loop over the same extents. */
export function elementwiseKernel(group: readonly GroupedNest[], alignmentOf: AlignmentOf): KernelSource {
  const nests = group.map(({ nest }) => nest);
  const { loops } = at(nests, 0);
  const total = loops.reduce((product, { extent }) => product * extent, 1);
  const smallest = Math.min(...nests.flatMap(accessesOf).map(({ dtype }) => elementBytes(dtype)));
  const width = Math.min(...group.map((grouped) => widthOf(grouped, alignmentOf, smallest)));
  const vectors = total / width;
  const copies = vectors >= manyVectors ? vectorsPerThread : 1;
  const parameters = parametersOf(group);
  const nameOf = (memory: Memory): string => parameterName(parameters, memory);
  const blockVectors = blockThreads * copies;
  const type = widerType([
    indexType(vectors + blockVectors),
    ...nests.map((nest) => offsetType(accessesOf(nest), nest.atoms)),
  ]);
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
  const text = [
    `extern "C" __global__ void __launch_bounds__(${blockThreads}) ${kernelName}(${parametersText(group, parameters, nameOf)}) {`,
    `const ${type} first = (${type})blockIdx.x * ${blockVectors}u + threadIdx.x;`,
    ...contexts.flatMap((context) => registerLines(context, copies)),
    "#pragma unroll",
    `for (int u = 0; u < ${copies}; u++) {`,
    `const ${type} t = first + u * ${blockThreads}u;`,
    `if (t >= ${vectors}u) break;`,
    ...contexts.flatMap((context) => [...variables(context), ...loadLines(context, "u")]),
    "}",
    "#pragma unroll",
    `for (int u = 0; u < ${copies}; u++) {`,
    `const ${type} t = first + u * ${blockThreads}u;`,
    `if (t >= ${vectors}u) break;`,
    ...contexts.flatMap((context, i) => (at(group, i).stores ? variables(context) : [])),
    ...resultLines(group, contexts, width),
    "}",
    "}",
  ];
  return {
    text: withPrelude(`${indented(text)}\n`),
    grid: [Math.ceil(vectors / blockVectors), 1, 1],
    block: [blockThreads, 1, 1],
    parameters,
  };
}

function widthOf({ nest, given }: GroupedNest, alignmentOf: AlignmentOf, smallest: number): number {
  const loads = nest.body.flatMap((step, i) => (step.kind === "load" && !given.has(i) ? [step.access] : []));
  return vectorWidth(loads, [nest.target], nest.atoms, nest.loops.at(-1), alignmentOf, smallest);
}

/** Intermediate quotients of the thread's number, apart per nest. */
function renamed(line: string, { prefix }: BodyContext): string {
  return line.replaceAll(/\bt_(\d+)\b/g, `${prefix}t_$1`);
}
