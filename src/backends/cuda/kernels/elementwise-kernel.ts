/**
 * The kernel of a group of nests without reductions: a thread takes a vector of neighbouring elements, and several of them a block apart, so that enough
 * bytes are in flight to keep the memory busy.
 *
 *     add of two bfloat16 tensors -> per thread 4 x (2 loads of 16 bytes), 32 float additions, 4 stores of 16 bytes
 */
import type { Memory } from "../../../kernels/nest.ts";
import { computeType, operand } from "../../../numerics/expression.ts";
import { at } from "../../../support/invariant.ts";
import {
  type BodyContext,
  loadedElement,
  loadLines,
  moveLines,
  operandNames,
  registerLines,
  resultName,
  valueLines,
} from "./body-text.ts";
import { elementBytes, encodeText, storageTypes } from "./element-text.ts";
import { affineText, divisionVariables, indexType, loopVariables, offsetType, widerType } from "./index-text.ts";
import { distinctMemories, kernelName, type KernelSource, parameterName } from "./kernel-source.ts";
import type { GroupedNest } from "./nest-groups.ts";
import { withPrelude } from "./prelude.ts";
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
  const memories = group.flatMap(({ nest, given, stores }): readonly Memory[] => [
    ...nest.body.flatMap((step, i) => (step.kind === "load" && !given.has(i) ? [step.access.memory] : [])),
    ...(stores ? [nest.target.memory] : []),
  ]);
  const parameters = distinctMemories(memories);
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
    ...contexts.flatMap(({ nest, prefix }, i) =>
      at(group, i).stores ? [`alignas(16) ${storageTypes[nest.target.dtype]} ${prefix}s[${width}];`] : [],
    ),
    "#pragma unroll",
    `for (int v = 0; v < ${width}; v++) {`,
    ...contexts.flatMap((context, i) => elementLines(context, at(group, i).stores)),
    "}",
    ...contexts.flatMap(({ nest, prefix }, i) => (at(group, i).stores ? storeLines(nest, prefix, nameOf, width) : [])),
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

function elementLines(context: BodyContext, stores: boolean): readonly string[] {
  const { prefix } = context;
  return [
    ...valueLines(context, "u", "v"),
    `const auto ${prefix}result = ${resultName(context)};`,
    ...(stores ? [`${prefix}s[v] = ${storedText(context)};`] : []),
  ];
}

/** What is stored of the last value. Its rounding and the packing into 16 bits are one step; a copy keeps its bits. */
function storedText(context: BodyContext): string {
  const { body, target } = context.nest;
  const copied = loadedElement(context, "u", "v");
  if (copied !== null) return copied;
  const last = at(body, body.length - 1);
  if (last.kind === "apply") return encodeText(target.dtype, last.expression, operandNames(context, last.operands));
  return encodeText(target.dtype, operand(computeType[target.dtype], 0), [resultName(context)]);
}

function storeLines(
  nest: GroupedNest["nest"],
  prefix: string,
  nameOf: (memory: Memory) => string,
  width: number,
): readonly string[] {
  const to = `${nameOf(nest.target.memory)} + (${affineText(nest.target.offset, `${prefix}i`)})`;
  return moveLines(nest.target, to, `${prefix}s`, width);
}

function parametersText(
  group: readonly GroupedNest[],
  parameters: readonly Memory[],
  nameOf: (memory: Memory) => string,
): string {
  return parameters
    .map((memory) => {
      const written = group.some(({ nest, stores }) => stores && nameOf(nest.target.memory) === nameOf(memory));
      const accesses = group.flatMap(({ nest }) => accessesOf(nest));
      const dtype = accesses.find((access) => nameOf(access.memory) === nameOf(memory))?.dtype ?? "bool";
      return `${written ? "" : "const "}${storageTypes[dtype]} *${nameOf(memory)}`;
    })
    .join(", ");
}

function accessesOf(nest: GroupedNest["nest"]): readonly GroupedNest["nest"]["target"][] {
  return [...nest.body.flatMap((step) => (step.kind === "load" ? [step.access] : [])), nest.target];
}

/** Intermediate quotients of the thread's number, apart per nest. */
function renamed(line: string, { prefix }: BodyContext): string {
  return line.replaceAll(/\bt_(\d+)\b/g, `${prefix}t_$1`);
}

/** Two spaces per open brace. */
export function indented(lines: readonly string[]): string {
  let depth = 0;
  return lines
    .map((line) => {
      if (line.startsWith("}")) depth--;
      const text = line.startsWith("#") ? line : `${"  ".repeat(depth)}${line}`;
      if (line.endsWith("{")) depth++;
      return text;
    })
    .join("\n");
}
