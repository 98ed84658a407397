/**
 * The kernel of a group of nests over rows (plan/row-group.ts). The lanes of a row take vectors of it in turn, load them
 * all, and then compute nest after nest. What a later nest reads stays in registers, or is computed again. A reduction
 * adds the elements of a lane, then lanes by shuffles, then warps through shared memory, so that all lanes have its
 * result. The extent of a row and the width of vectors alone decide in which order elements are added.
 *
 *     layerNorm of bfloat16 rows of 12288 -> 512 threads a row, each with 3 loads and stores of 16 bytes
 */
import { type Access, nestAccesses } from "../../../kernels/nests/nest.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at, invariant } from "../../../support/invariant.ts";
import { kernelName, type KernelSource, type Parameter, parameterName } from "./kernel-source.ts";
import { type RowGroup, type RowNest, registersReadBy } from "./plan/row-group.ts";
import { accessForm, type AlignmentOf, indexForm, vectorWidth, widest } from "./plan/vector-width.ts";
import {
  type BodyContext,
  registerName,
  loadedElements,
  loadLines,
  registerLines,
  resultName,
  valueLines,
} from "./text/body-text.ts";
import { decodeElementText, elementBytes, encodeElementText } from "./text/element-text.ts";
import { indexType, offsetType, widerType, affineText, divisionVariables, loopVariables } from "./text/index-text.ts";
import { kernelOf } from "./text/prelude.ts";
import { parametersOf, parametersText, elementLines, storedLines, storeLines } from "./text/result-text.ts";
import { computeType, operand } from "../../../numerics/scalar/expression.ts";
import { constantText, expressionText, scalarTypes } from "./text/expression-text.ts";

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
    ...nests.map(({ nest }) => offsetType(nestAccesses(nest), nest.atoms)),
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

function ownLoads({ nest, given }: RowNest): readonly Access[] {
  return nest.body.flatMap((step, i) => (step.kind === "load" && !given.has(i) ? [step.access] : []));
}

function storesOf({ form, nest, stores }: RowNest): readonly Access[] {
  return form === "elements" && stores ? [nest.target] : [];
}

function contextOf(
  nests: readonly RowNest[],
  { nest, given }: RowNest,
  index: number,
  { width, nameOf, type }: Pick<BodyContext, "width" | "nameOf"> & { readonly type: string },
): BodyContext {
  const textOf = (source: number, load: number | null): string => {
    const { form, nest: from, keeps } = at(nests, source);
    if (load === null) {
      if (form !== "elements") return `n${source}total`;
      if (keeps === "again") return `n${source}at(u, v)`;
      const kept = `n${source}kept[u][v]`;
      return keeps === "packed" ? decodeElementText(from.target.dtype, kept) : kept;
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

/*
 * The nests of a kernel over rows. `k` is the row of a lane and `r` a vector of it. `n<i>kept` holds the values of nest i
 * for the elements of the lane, as floats or as they are stored, or `n<i>at` computes one again; `n<i>total` is its
 * value for the row, which every lane has.
 */

const warpThreads = 32;

interface RowForm {
  readonly group: RowGroup;
  /** The type of offsets, and of numbers of rows and vectors. */
  readonly type: string;
  readonly width: number;
  /** Vectors of a row that a lane takes. */
  readonly copies: number;
  /** Whether there is the row `k`, and the vector `r` of a row: empty if there always is. */
  readonly inRange: readonly string[];
  readonly inRow: readonly string[];
  readonly contexts: readonly BodyContext[];
}

/** The lines of one nest of a kernel over rows. */
function rowNestLines(form: RowForm, member: RowNest, index: number): readonly string[] {
  switch (member.form) {
    case "row":
      return ofRow(form, member, index);
    case "elements":
      return ofElements(form, member, index);
    case "reduction":
      return ofReduction(form, member, index);
  }
}

/** One value per row, which every lane computes. */
function ofRow(form: RowForm, { nest, stores }: RowNest, index: number): readonly string[] {
  const context = at(form.contexts, index);
  return [
    `${scalarTypes[computeType[nest.target.dtype]]} n${index}total = 0;`,
    openIf(form.inRange),
    ...variables(form, context, false),
    ...registerLines(context, 1),
    ...loadLines(context, "0"),
    ...valueLines(context, "0", "0"),
    `n${index}total = ${resultName(context)};`,
    ...(stores ? storeTotal(context, index) : []),
    "}",
  ];
}

function ofElements(form: RowForm, member: RowNest, index: number): readonly string[] {
  const { nest, stores, keeps } = member;
  const context = at(form.contexts, index);
  const { width, copies, group } = form;
  const isRead = group.nests.some(({ given }) =>
    [...given.values()].some((source) => source.nest === index && source.load === null),
  );
  const isAgain = isRead && keeps === "again";
  if (isAgain && !stores) return [...loaded(form, context), ...valueFunction(context, index)];
  const kept = isRead && !isAgain;
  const isPacked = kept && keeps === "packed";
  const type = isPacked
    ? `alignas(16) ${dtypes[nest.target.dtype].cuda.c}`
    : scalarTypes[computeType[nest.target.dtype]];
  const encodes = stores || isPacked;
  return [
    ...(kept ? [`${type} n${index}kept[${copies}][${width}];`] : []),
    ...loaded(form, context),
    ...(isAgain ? valueFunction(context, index) : []),
    ...overVectors(form, context, [
      ...(encodes ? storedLines(context, width) : []),
      "#pragma unroll",
      `for (int v = 0; v < ${width}; v++) {`,
      ...elementLines(context, encodes, "u"),
      ...(kept ? [`n${index}kept[u][v] = ${isPacked ? `n${index}s[v]` : `n${index}result`};`] : []),
      "}",
      ...(isPacked ? wordLines(`n${index}kept`, width * elementBytes(nest.target.dtype)) : []),
      ...(stores ? storeLines(context, width) : []),
    ]),
  ];
}

/** The value for element `v` of vector `u`, from registers. */
function valueFunction(context: BodyContext, index: number): readonly string[] {
  return [
    `const auto n${index}at = [&](int u, int v) {`,
    ...valueLines(context, "u", "v"),
    `return ${resultName(context)};`,
    "};",
  ];
}

/**
 * Lets the compiler forget, after the reduction `index`, what it computed from registers that later nests read. It would
 * keep those values, in more registers than leave room for another block.
 */
function forgetLines({ group: { nests }, copies, width, contexts }: RowForm, index: number): readonly string[] {
  const given = nests.slice(index + 1).flatMap((later) => [...later.given.values()]);
  const read = new Set(given.flatMap(({ nest, load }) => (load === null ? nest : [])));
  const lines = [...read]
    .flatMap((nest) => registersReadBy(nests, nest))
    .filter(({ nest }) => nest <= index)
    .flatMap(({ nest, load, access }) =>
      load === null
        ? wordLines(`n${nest}kept`, width * elementBytes(access.dtype))
        : wordLines(
            registerName(at(contexts, nest), load),
            loadedElements(at(contexts, nest), access) * elementBytes(access.dtype),
          ),
    );
  if (lines.length === 0) return [];
  return ["#pragma unroll", `for (int u = 0; u < ${copies}; u++) {`, ...new Set(lines), "}"];
}

/** Makes the compiler have vector `u` of an array in words as they are. A few bytes are not worth it. */
function wordLines(name: string, bytes: number): readonly string[] {
  if (bytes % 4 !== 0) return [];
  const words = Array.from({ length: bytes / 4 }, (_, i) => `"+r"(((unsigned *)${name}[u])[${i}])`);
  return [`asm volatile("" : ${words.join(", ")});`];
}

function ofReduction(form: RowForm, { nest, stores }: RowNest, index: number): readonly string[] {
  const { reduction } = nest;
  invariant(reduction !== null, "a reduction has semantics");
  const context = at(form.contexts, index);
  const { width } = form;
  const type = scalarTypes[reduction.type];
  const sum = `n${index}sum`;
  const add = (left: string, right: string): string => `${left} = ${expressionText(reduction.combine, [left, right])};`;
  return [
    `${type} ${sum}[${width}];`,
    "#pragma unroll",
    `for (int v = 0; v < ${width}; v++) ${sum}[v] = ${constantText(reduction.type, reduction.identity)};`,
    ...loaded(form, context),
    ...overVectors(form, context, [
      "#pragma unroll",
      `for (int v = 0; v < ${width}; v++) {`,
      ...valueLines(context, "u", "v"),
      add(`${sum}[v]`, resultName(context)),
      "}",
    ]),
    ...(width === 1 ? [] : ["#pragma unroll", `for (int v = 1; v < ${width}; v++) ${add(`${sum}[0]`, `${sum}[v]`)}`]),
    ...addingLanes(form.group, index, type, add),
    `const ${scalarTypes[computeType[nest.target.dtype]]} n${index}total = ${expressionText(reduction.finish, [`${sum}[0]`])};`,
    ...(stores ? [openIf(form.inRange), ...variables(form, context, false), ...storeTotal(context, index), "}"] : []),
    ...forgetLines(form, index),
  ];
}

/** Adds the lanes of a row, so that each has the result. Lanes are all there, also those of a row beyond the last. */
function addingLanes(
  { lanes, threads }: RowGroup,
  index: number,
  type: string,
  add: (left: string, right: string) => string,
): readonly string[] {
  const [sum, shared] = [`n${index}sum[0]`, `n${index}shared`];
  const inWarp = Math.min(lanes, warpThreads);
  const shuffles =
    inWarp === 1
      ? []
      : [
          "#pragma unroll",
          `for (unsigned half = ${inWarp / 2}u; half > 0; half /= 2) {`,
          `const ${type} other = __shfl_xor_sync(0xffffffffu, ${sum}, half);`,
          add(sum, "other"),
          "}",
        ];
  if (lanes <= warpThreads) return shuffles;
  const warps = lanes / warpThreads;
  return [
    ...shuffles,
    `__shared__ ${type} ${shared}[${threads / warpThreads}];`,
    `if (threadIdx.x % ${warpThreads}u == 0) ${shared}[threadIdx.x / ${warpThreads}u] = ${sum};`,
    "__syncthreads();",
    `${sum} = ${shared}[threadIdx.x / ${lanes}u * ${warps}u];`,
    "#pragma unroll",
    `for (unsigned i = 1; i < ${warps}u; i++) {`,
    `const ${type} other = ${shared}[threadIdx.x / ${lanes}u * ${warps}u + i];`,
    add(sum, "other"),
    "}",
  ];
}

/** One lane stores the row's value. */
function storeTotal({ nest: { target }, nameOf, prefix }: BodyContext, index: number): readonly string[] {
  const value = operand(computeType[target.dtype], 0);
  const to = `${nameOf(target.memory)}[${affineText(target.offset, `${prefix}i`)}]`;
  return [`if (lane == 0) ${to} = ${encodeElementText(target.dtype, value, [`n${index}total`])};`];
}

/** Loads all vectors of the lane before any is used. */
function loaded(form: RowForm, context: BodyContext): readonly string[] {
  const registers = registerLines(context, form.copies);
  return registers.length === 0 ? [] : [...registers, ...overVectors(form, context, loadLines(context, "u"))];
}

/** `lines` for each vector `u` of the lane. */
function overVectors(form: RowForm, context: BodyContext, lines: readonly string[]): readonly string[] {
  const { type, copies, inRange, inRow, group } = form;
  return [
    "#pragma unroll",
    `for (int u = 0; u < ${copies}; u++) {`,
    `const ${type} r = lane + u * ${group.lanes}u;`,
    openIf([...inRange, ...inRow]),
    ...variables(form, context, true),
    ...lines,
    "}",
    "}",
  ];
}

function openIf(conditions: readonly string[]): string {
  return conditions.length === 0 ? "{" : `if (${conditions.join(" && ")}) {`;
}

/** The loop variables at row `k`, and those at vector `r` of it. */
function variables(form: RowForm, { nest, prefix }: BodyContext, inRow: boolean): readonly string[] {
  const { type, width, group } = form;
  const [rows, elements] = [nest.loops.slice(0, group.rowLoops), nest.loops.slice(group.rowLoops)];
  return [
    ...loopVariables(rows, "k", type, `${prefix}i`),
    ...(inRow ? loopVariables(elements, "r", type, `${prefix}i`, width) : []),
    ...(inRow || rowDivisions(nest, group.rowLoops) ? divisionVariables(nest.atoms, type, `${prefix}i`) : []),
  ];
}

/** Whether the nest's divisions need no loop over elements. */
function rowDivisions({ atoms, loops }: RowNest["nest"], rowLoops: number): boolean {
  const elements = new Set(loops.slice(rowLoops).map(({ atom }) => atom));
  return atoms.every(
    (atom) =>
      (atom.kind !== "quotient" && atom.kind !== "remainder") ||
      atom.dividend.terms.every((term) => !elements.has(term.atom)),
  );
}
