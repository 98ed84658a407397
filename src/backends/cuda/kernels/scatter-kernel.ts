/**
 * The kernel of a scatterAdd: a thread has an index of the axes beside the scattered one and a range of places along
 * that. It reads all indices in order, and adds those in its range. No other thread adds to its elements, so the sums
 * have the same bits in every run.
 */
import { lastNeeded } from "../../../kernels/nests/affine.ts";
import type { Nest } from "../../../kernels/nests/nest.ts";
import { at, invariant } from "../../../support/invariant.ts";
import { indented, kernelName, type KernelSource, type Parameter, parameterName } from "./kernel-source.ts";
import { iterationCount } from "./plan/reduction-shape.ts";
import {
  type BodyContext,
  declaredIndices,
  loadsBetween,
  registerLines,
  resultName,
  valueLines,
} from "./text/body-text.ts";
import { decodeElementText, encodeElementText } from "./text/element-text.ts";
import {
  affineText,
  divisionVariables,
  indexType,
  loopName,
  loopVariables,
  offsetType,
  widerType,
} from "./text/index-text.ts";
import { withPrelude } from "./text/prelude.ts";
import { resultAccesses, parametersOf, parametersText } from "./text/result-text.ts";

const blockThreads = 256;
/** Threads that keep memory busy. Each range of places costs a look at all indices. */
const manyThreads = 1 << 18;
const mostRanges = 64;

export function scatterKernel(nest: Nest): KernelSource {
  const { scatter, target } = nest;
  invariant(scatter !== undefined, "a scatter kernel is made of a scatter");
  const group = [{ nest, given: new Map<number, number>(), stores: true }];
  const parameters = parametersOf(group);
  const nameOf = (parameter: Parameter): string => parameterName(parameters, parameter);
  const [columns, added] = [iterationCount(nest.loops), iterationCount(nest.reducedLoops)];
  const type = widerType([
    indexType(columns + blockThreads),
    indexType(added),
    offsetType(resultAccesses(nest), nest.atoms),
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
  const scattered = target.offset.terms.find(({ atom }) => at(nest.atoms, atom).kind === "loaded")?.atom ?? null;
  const loaded = scattered === null ? 0 : lastNeeded(nest.atoms, scattered) + 1;
  const { places, ranges } = rangesOf(nest, scattered, columns);
  const declared = new Set<number>();
  const to = `${nameOf(target.memory)}[${affineText(target.offset, "ni")}]`;
  const text = [
    `extern "C" __global__ void __launch_bounds__(${blockThreads}) ${kernelName}(${parametersText(group, parameters, nameOf)}) {`,
    `const ${type} k = (${type})blockIdx.x * ${blockThreads}u + threadIdx.x;`,
    `if (k >= ${columns}u) return;`,
    ...loopVariables(nest.loops, "k", type, "ni"),
    "#pragma unroll 4",
    `for (${type} r = 0; r < ${added}u; r++) {`,
    ...loopVariables(nest.reducedLoops, "r", type, "ni"),
    ...divisionVariables(nest.atoms, type, "ni"),
    ...registerLines(context, 1),
    ...loadsBetween(context, "0", 0, loaded, declared),
    ...declaredIndices(context, target, "0", declared),
    ...(ranges === 1
      ? []
      : [`if (${loopName("ni", scattered ?? 0)} - (${type})blockIdx.y * ${places}u >= ${places}u) continue;`]),
    ...loadsBetween(context, "0", loaded, nest.body.length, declared),
    ...valueLines(context, "0", "0"),
    `const auto sum = ${decodeElementText(target.dtype, to)};`,
    `${to} = ${encodeElementText(target.dtype, scatter, ["sum", resultName(context)])};`,
    "}",
    "}",
  ];
  return {
    text: withPrelude(`${indented(text)}\n`),
    grid: [Math.ceil(columns / blockThreads), ranges, 1],
    block: [blockThreads, 1, 1],
    parameters,
  };
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
