/**
 * The kernel of a group of nests by tiles (plan/tile-plan.ts). A block reads its tile of every staged operand along
 * that operand's rows, all loads before it waits for any. It transposes the tile in shared memory, then computes and
 * stores along the results' rows. Rows of shared tiles are padded so that reading a column touches every bank once.
 */
import { nestAccesses } from "../../../kernels/nests/nest.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { type BodyContext, loadLines, moveLines, registerLines, registerName } from "./text/body-text.ts";
import { affineText, indexType, loopName, offsetType, widerType } from "./text/index-text.ts";
import { kernelName, type KernelSource, parameterName } from "./kernel-source.ts";
import type { GroupedNest } from "./plan/nest-groups.ts";
import { kernelOf } from "./text/prelude.ts";
import { parametersOf, parametersText, resultLines } from "./text/result-text.ts";
import type { StagedLoad, TilePlan } from "./plan/tile-plan.ts";

const blockThreads = 256;

/** All nests of `group` loop over the same extents. */
export function tiledKernel(group: readonly GroupedNest[], plan: TilePlan): KernelSource {
  const { across, along, side, staged, width } = plan;
  const extents = at(group, 0).nest.loops.map(({ extent }) => extent);
  const tiles = extents.map((extent, position) =>
    position === across || position === along ? Math.ceil(extent / side) : extent,
  );
  const blocks = tiles.reduce((product, count) => product * count, 1);
  const parameters = parametersOf(group);
  const type = widerType([
    indexType(Math.max(blocks, ...extents) + side),
    ...group.map(({ nest }) => offsetType(nestAccesses(nest), nest.atoms)),
  ]);
  const contexts = group.map(({ nest, given }, i): BodyContext => ({
    nest,
    prefix: `n${i}`,
    loop: nest.loops.at(-1),
    width,
    nameOf: (memory) => parameterName(parameters, memory),
    offsetType: type,
    given: new Map([...given].map(([instruction, source]) => [instruction, `n${source}result`])),
  }));
  /** The nest's loop variables, from the positions p0, p1 and so on. */
  const variables = ({ nest, prefix }: BodyContext): readonly string[] =>
    nest.loops.map(({ atom }, position) => `const ${type} ${loopName(`${prefix}i`, atom)} = p${position};`);
  /**
   * A loop over a thread's share of the tile, `step` elements along `column` at a time: `row` and `column` count from
   * the tile's corner.
   */
  const share = (step: number, row: number, column: number, body: readonly string[]): readonly string[] => [
    "#pragma unroll",
    `for (int u = 0; u < ${(side * side) / step / blockThreads}; u++) {`,
    `const unsigned k = threadIdx.x + u * ${blockThreads}u;`,
    `const unsigned row = k / ${side / step}u, column = k % ${side / step}u${step === 1 ? "" : ` * ${step}u`};`,
    `const ${type} p${row} = corner${row} + row, p${column} = corner${column} + column;`,
    ...leaving(extents, side, [row, column]),
    ...body,
    "}",
  ];
  const direct = contexts.flatMap((context, n) => loadLines(withoutStaged(context, n, staged), "u"));
  const text = [
    `extern "C" __global__ void __launch_bounds__(${blockThreads}) ${kernelName}(${parametersText(group, parameters, at(contexts, 0).nameOf)}) {`,
    ...staged.map(({ access, pitch }, i) => `__shared__ ${dtypes[access.dtype].cuda.c} tile${i}[${side}][${pitch}];`),
    ...cornerLines(tiles, [across, along], side, type),
    ...contexts.flatMap((context) => registerLines(context, (side * side) / width / blockThreads)),
    ...staged.flatMap((load, i) => {
      const context = at(contexts, load.nest);
      const copies = (side * side) / load.width / blockThreads;
      const read = [...variables(context), ...readLines(load, `read${i}[u]`, context)];
      return [
        `alignas(16) ${dtypes[load.access.dtype].cuda.c} read${i}[${copies}][${load.width}];`,
        ...share(load.width, along, across, read),
      ];
    }),
    ...(direct.length === 0 ? [] : share(width, across, along, [...contexts.flatMap(variables), ...direct])),
    ...staged.flatMap(({ width: step }, i) => {
      const elements = Array.from({ length: step }, (_, v) => `tile${i}[row][column + ${v}u] = read${i}[u][${v}];`);
      return share(step, along, across, elements);
    }),
    "__syncthreads();",
    ...share(width, across, along, [
      ...contexts.flatMap(variables),
      ...staged.flatMap(({ nest, instruction }, i) => {
        const register = registerName(at(contexts, nest), instruction);
        return Array.from({ length: width }, (_, v) => `${register}[u][${v}] = tile${i}[column + ${v}u][row];`);
      }),
      ...resultLines(group, contexts, width),
    ]),
    "}",
  ];
  return kernelOf(text, [blocks, 1, 1], blockThreads, parameters);
}

/** The first position of the block's tile in every loop. Consecutive tiles lie along the results. */
function cornerLines(
  tiles: readonly number[],
  tiled: readonly number[],
  side: number,
  type: string,
): readonly string[] {
  const lines: string[] = [];
  let rest = "(unsigned)blockIdx.x";
  for (let position = tiles.length - 1; position >= 0; position--) {
    const count = at(tiles, position);
    const digit = position === 0 ? rest : `${rest} % ${count}u`;
    const isTiled = tiled.includes(position);
    lines.push(`const ${type} ${isTiled ? "corner" : "p"}${position} = ${isTiled ? `(${digit}) * ${side}u` : digit};`);
    if (position > 0) {
      lines.push(`const unsigned block${position} = ${rest} / ${count}u;`);
      rest = `block${position}`;
    }
  }
  return lines;
}

/** Skips positions outside the loops in a partial tile. */
function leaving(extents: readonly number[], side: number, positions: readonly number[]): readonly string[] {
  const tests = positions.flatMap((position) => {
    const extent = at(extents, position);
    return extent % side === 0 ? [] : [`p${position} >= ${extent}u`];
  });
  return tests.length === 0 ? [] : [`if (${tests.join(" || ")}) continue;`];
}

/** Reads elements along the operand into registers. */
function readLines({ access, width }: StagedLoad, to: string, { nameOf, prefix }: BodyContext): readonly string[] {
  const from = `${nameOf(access.memory)} + (${affineText(access.offset, `${prefix}i`)})`;
  return moveLines(access, to, from, width);
}

/** Staged loads are in registers already when the others are read. */
function withoutStaged(context: BodyContext, nest: number, staged: readonly StagedLoad[]): BodyContext {
  const own = staged.filter((load) => load.nest === nest).map(({ instruction }) => [instruction, ""] as const);
  return { ...context, given: new Map([...context.given, ...own]) };
}
