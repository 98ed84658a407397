/**
 * Finds nests that one kernel computes row by row: reductions over the same elements of each row, and the nests over
 * rows or over their elements before, between and after them. The threads of a row read it once, keep what later nests
 * read in registers, and share the results of its reductions. Whether nests run so depends on the extent of a row and on
 * layouts, never on the number of rows.
 */
import { accumulatesRows } from "../../../../kernels/nests/arrange-loops.ts";
import { iterationCount, loadsOf, type Access, type Loop, type Nest } from "../../../../kernels/nests/nest.ts";
import type { Phase } from "../../../../kernels/phase.ts";
import { isPacked } from "../../../../numerics/dtype.ts";
import { accumulatorDType, computeType, type Expression } from "../../../../numerics/scalar/expression.ts";
import { at } from "../../../../support/invariant.ts";
import { memoryKey } from "../kernel-source.ts";
import { elementBytes } from "../text/element-text.ts";
import { isStored, mayFollow, positionKey, nestSource } from "./nest-reads.ts";
import { blockThreads, powerOfTwoAtLeast } from "./reduction-shape.ts";
import { refineLoops } from "./refine-loops.ts";
import { accessForm } from "./vector-width.ts";

export interface RowGroup {
  readonly kind: "rows";
  readonly nests: readonly RowNest[];
  /** How many of each nest's loops are over rows; the others are over the elements of a row. */
  readonly rowLoops: number;
  readonly rows: number;
  readonly elements: number;
  /** Threads that share a row, a power of two, and the threads of a block. */
  readonly lanes: number;
  readonly threads: number;
}

/** Where a load finds its value: the result of an earlier nest, or what an earlier nest has loaded. */
export interface Given {
  readonly nest: number;
  /** Null: the result of the nest. */
  readonly load: number | null;
}

export interface RowNest {
  /** Whether it reduces the elements, has a value for each of them, or one value per row. */
  readonly form: "reduction" | "elements" | "row";
  /** `loops` are those over rows and over elements, also of a reduction. */
  readonly nest: Nest;
  readonly given: ReadonlyMap<number, Given>;
  readonly stores: boolean;
  readonly keeps: Keeping;
}

/** How later nests get its values of elements: computed again, or from registers, as stored or in their compute type. */
type Keeping = "again" | "packed" | "wide";

/** Elements of a row that a thread takes; a longer row has more threads. */
const laneElements = 32;
const mostLanes = 1024;
const mostElements = laneElements * mostLanes;
const mostNests = 24;

/** The group that begins with the phase at `start`; null if there is none of a reduction and another nest. */
export function rowGroupAt(phases: readonly Phase[], start: number): RowGroup | null {
  const extents = extentsAt(phases, start);
  if (extents === null) return null;
  const { rows, elements } = extents;
  let nests: readonly Nest[] = [];
  const forms: RowNest["form"][] = [];
  for (const phase of phases.slice(start, start + mostNests)) {
    const form = formOf(phase, rows, elements);
    if (form === null || phase.kind !== "nest") break;
    const refined = refineLoops([...nests, overElements(phase.nest, form, elements)]);
    const last = refined?.at(-1);
    if (refined === null || last === undefined || !mayFollow(refined.slice(0, -1), last)) break;
    if (form !== "row" && loadsOf(last).some((access) => !isSmooth(last, access))) break;
    nests = refined;
    forms.push(form);
  }
  const later = (size: number): readonly Phase[] => phases.slice(start + size);
  for (let size = nests.length; size > 1 && forms.slice(0, size).includes("reduction"); size--) {
    const group = groupOf(nests.slice(0, size), forms, later(size), extents);
    if (group !== null) return group;
  }
  return null;
}

/** Null if registers do not hold what its nests keep. */
function groupOf(
  nests: readonly Nest[],
  forms: readonly RowNest["form"][],
  later: readonly Phase[],
  { rows, elements }: Extents,
): RowGroup | null {
  const lanes = Math.min(mostLanes, powerOfTwoAtLeast(Math.ceil(elements / laneElements)));
  const members = nests.map((nest, i): RowNest => {
    const form = at(forms, i);
    const keeps = keepingOf({ form, nest }, elements / lanes);
    return { form, nest, given: givenTo(nests, forms, i), stores: isStored(nest, later), keeps };
  });
  const threads = Math.max(blockThreads, lanes);
  if (keptWords(members) * Math.ceil(elements / lanes) > registersOf(threads)) return null;
  return { kind: "rows", nests: members, rowLoops: rowLoopsOf(at(nests, 0), rows), rows, elements, lanes, threads };
}

interface Extents {
  readonly rows: number;
  readonly elements: number;
}

/** The extents of the first reduction at `start` or after it. */
function extentsAt(phases: readonly Phase[], start: number): Extents | null {
  const first = phases.slice(start).findIndex((phase) => phase.kind !== "nest" || phase.nest.reduction !== null);
  const phase = phases[start + first];
  if (first < 0 || phase?.kind !== "nest") return null;
  const [rows, elements] = [iterationCount(phase.nest.loops), iterationCount(phase.nest.reducedLoops)];
  return elements < 2 || elements > mostElements ? null : { rows, elements };
}

/** Null if the nest is not over such rows. */
function formOf(phase: Phase, rows: number, elements: number): RowNest["form"] | null {
  if (phase.kind !== "nest") return null;
  const { nest } = phase;
  if (nest.ordered !== undefined || nest.atoms.some(({ kind }) => kind === "loaded")) return null;
  if (nest.reduction !== null) {
    const fits = iterationCount(nest.loops) === rows && iterationCount(nest.reducedLoops) === elements;
    return fits && !accumulatesRows(nest) ? "reduction" : null;
  }
  if (iterationCount(nest.loops) === rows * elements) return "elements";
  return iterationCount(nest.loops) === rows ? "row" : null;
}

/** The nest with loops over rows and elements. No access of a nest over rows moves along the loop over elements. */
function overElements(nest: Nest, form: RowNest["form"], elements: number): Nest {
  if (form === "elements") return nest;
  if (form === "reduction") return { ...nest, loops: [...nest.loops, ...nest.reducedLoops], reducedLoops: [] };
  const loop: Loop = { atom: nest.atoms.length, extent: elements };
  return { ...nest, atoms: [...nest.atoms, { kind: "loop", extent: elements }], loops: [...nest.loops, loop] };
}

/** Whether neighbouring threads read neighbouring elements, or one. */
function isSmooth(nest: Nest, access: Access): boolean {
  const form = accessForm(access, nest.atoms, at(nest.loops, nest.loops.length - 1));
  return form !== "strided";
}

function givenTo(nests: readonly Nest[], forms: readonly RowNest["form"][], index: number): RowNest["given"] {
  const nest = at(nests, index);
  const given = new Map<number, Given>();
  for (const [i, instruction] of nest.body.entries()) {
    if (instruction.kind !== "load") continue;
    const { access } = instruction;
    const source = nestSource(nests, index, access);
    const loaded = source < 0 && forms[index] !== "row" ? loadedBefore(nests, forms, index, access) : null;
    if (source >= 0) given.set(i, { nest: source, load: null });
    else if (loaded !== null) given.set(i, loaded);
  }
  return given;
}

/** The first load of the same element by an earlier nest over elements. */
function loadedBefore(
  nests: readonly Nest[],
  forms: readonly RowNest["form"][],
  index: number,
  access: Access,
): Given | null {
  const keyOf = (nest: Nest, each: Access): string => `${memoryKey(each.memory)} ${positionKey(nest, each)}`;
  const key = keyOf(at(nests, index), access);
  for (const [k, earlier] of nests.slice(0, index).entries()) {
    if (forms[k] === "row") continue;
    const load = earlier.body.findIndex((step) => step.kind === "load" && keyOf(earlier, step.access) === key);
    if (load >= 0) return { nest: k, load };
  }
  return null;
}

/** The number of loops over rows: reductions keep these apart from the loops over elements. */
function rowLoopsOf({ loops }: Nest, rows: number): number {
  let [loop, product] = [0, 1];
  while (product < rows) product *= at(loops, loop++).extent;
  return loop;
}

/** The most 32-bit registers per element that hold what later nests read. */
function keptWords(members: readonly RowNest[]): number {
  const lives = new Map<string, { readonly first: number; last: number; readonly words: number }>();
  for (const [position, { given }] of members.entries()) {
    for (const { nest, load } of given.values()) {
      const { form, nest: source, keeps } = at(members, nest);
      if (form !== "elements" && load === null) continue;
      const step = load === null ? undefined : source.body[load];
      const own = source.target.dtype;
      const bytes = elementBytes(
        step?.kind === "load" ? step.access.dtype : keeps === "packed" ? own : accumulatorDType[computeType[own]],
      );
      lives.set(`${nest} ${load}`, { first: nest, last: position, words: bytes / 4 });
    }
  }
  const words = members.map((_, position) =>
    [...lives.values()].reduce(
      (sum, life) => sum + (life.first <= position && position < life.last ? life.words : 0),
      0,
    ),
  );
  return Math.max(...words);
}

/** The registers that a thread has for elements, beside those of the computation. */
function registersOf(threads: number): number {
  return Math.min(255, 65_536 / threads) - 28;
}

// Values of a nest over elements that later nests of a group of rows compute again, instead of reading them: so they need
// the registers of what they are computed from alone, often of 16 bits an element and not 32.

/** What matters here of a nest of a row group. */
interface Member {
  readonly form: "reduction" | "elements" | "row";
  readonly nest: Nest;
  /** By load: the earlier nest that has its value, as its result if `load` is null. */
  readonly given: ReadonlyMap<number, { readonly nest: number; readonly load: number | null }>;
  readonly keeps: Keeping;
}

/** Elements of a lane for whose values there are registers. 24 and 32 were measured (bench/NOTES.md). */
const keptElements = 24;

/**
 * Values of 8 and 16 bits stay as they are stored, unless a single step makes them. Others are computed again from
 * registers, in primitives alone: a library function takes longer than it saves.
 */
function keepingOf({ form, nest }: Pick<Member, "form" | "nest">, laneElements: number): Keeping {
  const { body, target } = nest;
  if (form !== "elements") return "wide";
  if (isPacked(target.dtype) && body.filter(({ kind }) => kind === "apply").length > 1) return "packed";
  const isAgain =
    laneElements > keptElements &&
    body.every((step) => step.kind === "load" || (step.kind === "apply" && isOfPrimitives(step.expression)));
  return isAgain ? "again" : "wide";
}

function isOfPrimitives(expression: Expression): boolean {
  switch (expression.kind) {
    case "operand":
    case "constant":
      return true;
    case "apply":
      return expression.operands.every(isOfPrimitives);
    case "round":
      return isOfPrimitives(expression.operand);
    default:
      return false;
  }
}

/** The registers from which later nests get the values of a nest; `load` is null for its own, as stored. */
export function registersReadBy(
  members: readonly Member[],
  index: number,
): readonly { readonly nest: number; readonly load: number | null; readonly access: Access }[] {
  const { nest, given, keeps } = at(members, index);
  if (keeps === "packed") return [{ nest: index, load: null, access: nest.target }];
  if (keeps === "wide") return [];
  return nest.body.flatMap((step, position) => {
    if (step.kind !== "load") return [];
    const source = given.get(position);
    if (source?.load === null) return registersReadBy(members, source.nest);
    // The access of the nest that loads it: other nests have other atoms.
    const [from, load] = source?.load === undefined ? [index, position] : [source.nest, source.load];
    const loaded = at(at(members, from).nest.body, load);
    return loaded.kind === "load" ? [{ nest: from, load, access: loaded.access }] : [];
  });
}
