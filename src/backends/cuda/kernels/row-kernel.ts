/**
 * The kernel of a group of nests over rows (plan/row-group.ts). The lanes of a row take vectors of it in turn, load them
 * all, and then compute nest after nest. What a later nest reads stays in registers, or is computed again. A reduction adds the elements of a
 * lane, then lanes by shuffles, then warps through shared memory, so that all lanes have its result. The extent of a row
 * and the width of vectors alone decide in which order elements are added.
 *
 *     layerNorm of bfloat16 rows of 12288 -> 512 threads a row, each with 3 loads and stores of 16 bytes
 */
import { at, invariant } from "../../../support/invariant.ts";
import { kernelName, type KernelSource, type Parameter, parameterName } from "./kernel-source.ts";
import type { RowGroup, RowNest } from "./plan/row-group.ts";
import { accessForm, type AlignmentOf, indexForm, vectorWidth, widest } from "./plan/vector-width.ts";
import { type BodyContext, registerName } from "./text/body-text.ts";
import { decodeElementText, elementBytes } from "./text/element-text.ts";
import { indexType, offsetType, widerType } from "./text/index-text.ts";
import { kernelOf } from "./text/prelude.ts";
import { resultAccesses, parametersOf, parametersText } from "./text/result-text.ts";
import { type RowForm, rowNestLines } from "./text/row-text.ts";

export function rowKernel(group: RowGroup, alignmentOf: AlignmentOf): KernelSource {
  const { nests, rows, elements, lanes, threads } = group;
  const widths = widthsOf(nests, alignmentOf);
  // Rows of one stretched element have no memory to move along.
  const width = widths.length === 0 ? 1 : Math.min(...widths, widest);
  const vectors = elements / width;
  const parameters = parametersOf(nests);
  const nameOf = (parameter: Parameter): string => parameterName(parameters, parameter);
  const rowsPerBlock = threads / lanes;
  const blocks = Math.ceil(rows / rowsPerBlock);
  const type = widerType([
    indexType(blocks * rowsPerBlock),
    indexType(vectors + lanes),
    ...nests.map(({ nest }) => offsetType(resultAccesses(nest), nest.atoms)),
  ]);
  const form: RowForm = {
    group,
    type,
    width,
    copies: Math.ceil(vectors / lanes),
    inRange: rows % rowsPerBlock === 0 ? [] : [`k < ${rows}u`],
    inRow: vectors % lanes === 0 ? [] : [`r < ${vectors}u`],
    contexts: nests.map((member, i) => contextOf(nests, member, i, { width, nameOf, type })),
  };
  const text = [
    `extern "C" __global__ void __launch_bounds__(${threads}) ${kernelName}(${parametersText(nests, parameters, nameOf)}) {`,
    `const unsigned lane = ${lanes === 1 ? "0u" : `threadIdx.x % ${lanes}u`};`,
    `const ${type} k = (${type})blockIdx.x * ${rowsPerBlock}u + threadIdx.x / ${lanes}u;`,
    ...nests.flatMap((member, i) => rowNestLines(form, member, i)),
    "}",
  ];
  return kernelOf(text, [blocks, 1, 1], threads, parameters);
}

/** The widths that the accesses of each nest allow; none for a nest that moves along no memory. */
function widthsOf(nests: readonly RowNest[], alignmentOf: AlignmentOf): readonly number[] {
  const over = nests.filter(({ form }) => form !== "row");
  const moved = over.map((member) => ({ member, loads: ownLoads(member), stores: storesOf(member) }));
  const smallest = Math.min(
    ...moved.flatMap(({ loads, stores }) => [...loads, ...stores]).map(({ dtype }) => elementBytes(dtype)),
  );
  return moved.flatMap(({ member: { nest }, loads, stores }): readonly number[] => {
    const loop = at(nest.loops, nest.loops.length - 1);
    const divides = nest.body.some(
      (step) => step.kind === "index" && indexForm(step.index, nest.atoms, loop) === "divided",
    );
    if (divides) return [1];
    const moves = [...loads, ...stores].some((access) => accessForm(access, nest.atoms, loop) !== "same");
    return moves ? [vectorWidth(loads, stores, nest.atoms, loop, alignmentOf, smallest)] : [];
  });
}

function ownLoads({ nest, given }: RowNest): ReturnType<typeof resultAccesses> {
  return nest.body.flatMap((step, i) => (step.kind === "load" && !given.has(i) ? [step.access] : []));
}

function storesOf({ form, nest, stores }: RowNest): ReturnType<typeof resultAccesses> {
  return form === "elements" && stores ? [nest.target] : [];
}

function contextOf(
  nests: readonly RowNest[],
  { nest, given }: RowNest,
  index: number,
  { width, nameOf, type }: Pick<BodyContext, "width" | "nameOf"> & { readonly type: string },
): BodyContext {
  const textOf = (source: number, load: number | null): string => {
    const { form, nest: from } = at(nests, source);
    if (load === null) {
      if (form !== "elements") return `n${source}total`;
      return at(nests, source).again ? `n${source}at(u, v)` : `n${source}kept[u][v]`;
    }
    const step = from.body[load];
    invariant(step?.kind === "load", "a value that a nest shares is loaded", { source, load });
    const loop = at(from.loops, from.loops.length - 1);
    const element = accessForm(step.access, from.atoms, loop) === "same" ? "0" : "v";
    return decodeElementText(step.access.dtype, `${registerName({ prefix: `n${source}` }, load)}[u][${element}]`);
  };
  return {
    nest,
    prefix: `n${index}`,
    loop: nest.loops.at(-1),
    width,
    nameOf,
    offsetType: type,
    given: new Map([...given].map(([i, { nest: source, load }]) => [i, textOf(source, load)])),
  };
}
