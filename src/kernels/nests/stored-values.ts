/**
 * Which values of a unit are stored; each gets a separate loop nest. All others are inlined where they are read. The
 * stored values are results, reductions, contractions, joined values, computed operands of contractions, and
 * computations that inlining would repeat: several nests read them, or one nest reads them at several indices or along
 * an axis that they do not have.
 */
import type { UnitKernel, UnitStep } from "../../commands/kernel.ts";
import { isPacked } from "../../numerics/dtype.ts";
import { at, isOneOf } from "../../support/invariant.ts";
import type { Phase } from "../phase.ts";
import type { Instruction, NestMemory, Nest } from "./nest.ts";
import { isViewStep } from "./view-index.ts";
import { elementCount } from "../../numerics/tensor/host-tensor.ts";

/** With more computations in one nest, JavaScript engines no longer optimize the function well. */
const mostInlined = 64;

/** What cannot be computed where another nest reads it. */
const ownNest: ReadonlySet<UnitStep["kind"]> = new Set([
  "Reduction",
  "Matmul",
  "Linear",
  "GroupedMatmul",
  "Cat",
  "Pad",
  "ScatterAdd",
  "Scan",
  "Argsort",
]);

/** One read of a value by a nest. */
interface Use {
  /** The stored value that the reading nest computes. */
  readonly nest: number;
  /** The views and broadcasts between the nest's index and the value's. Equal paths give equal indices. */
  readonly path: string;
  /**
   * Whether this read requires a stored value: a contraction reads memory, or the nest reads each element more than
   * once.
   */
  readonly store: boolean;
}

export function storedValues(unit: Pick<UnitKernel, "values" | "steps" | "results">): ReadonlySet<number> {
  const stored = new Set<number>(unit.results);
  const uses = unit.values.map(() => new Map<string, Use>());
  const inlined = new Map<number, number>();

  const record = (value: number, use: Use): void => {
    const key = `${use.nest}${use.path}`;
    const known = at(uses, value).get(key);
    at(uses, value).set(key, known === undefined ? use : { ...use, store: use.store || known.store });
  };

  const readers = readersOf(unit);
  const producers = new Map(unit.steps.map((step) => [step.output, step]));
  /** Whether the boxes of a cat are those of the stored value that is made of it. */
  const isJoined = (cat: number): boolean => {
    let value = cat;
    while (!stored.has(value)) {
      const [reader, ...others] = at(readers, value);
      if (reader === undefined || others.length > 0 || !joinsThrough(unit, reader)) return false;
      value = reader.output;
    }
    return value !== cat;
  };
  for (const [position, step] of [...unit.steps.entries()].toReversed()) {
    const value = step.output;
    const own = [...at(uses, value).values()];
    if (own.length === 0 && !stored.has(value)) continue;
    const repeats = own.length > 1 || own.some((use) => use.store);
    const hasOwnNest = ownNest.has(step.kind) && !(step.kind === "Cat" && !repeats && isJoined(value));
    const isInlined = isFree(unit, step) || (!own.some((use) => use.store) && isShift(unit, producers, step));
    if (hasOwnNest || (repeats && !isInlined)) stored.add(value);
    const nest = own[0]?.nest;
    if (!stored.has(value) && !isViewStep(step) && nest !== undefined) {
      const count = (inlined.get(nest) ?? 0) + 1;
      inlined.set(nest, count);
      if (count > mostInlined) stored.add(value);
    }
    const nests: readonly Use[] = stored.has(value) ? [{ nest: value, path: "", store: false }] : own;
    for (const [i, input] of step.inputs.entries()) {
      const change = pathChange(unit, step, i);
      for (const use of nests) {
        record(input, {
          nest: use.nest,
          path: change === null ? use.path : `${use.path}/${position}.${i}`,
          store: use.store || change === "contracted" || change === "stretched",
        });
      }
    }
  }
  return stored;
}

/** Fewer elements than one in this many of the result are read for nothing. */
const fewOfResult = 16;

/**
 * Whether a step adds, subtracts or multiplies an input of the unit and a value for each row, as a norm's distance from
 * the mean: reading these again takes less than storing the result and reading it.
 */
function isShift(
  unit: Pick<UnitKernel, "values" | "steps">,
  producers: ReadonlyMap<number, UnitStep>,
  step: UnitStep,
): boolean {
  if (step.kind !== "Binary" || !isOneOf(["add", "sub", "mul"] as const, step.op)) return false;
  const { dtype, shape } = at(unit.values, step.output);
  const sourceOf = (value: number): number => {
    const producer = producers.get(value);
    return producer !== undefined && isFree(unit, producer) && producer.inputs[0] !== undefined
      ? sourceOf(producer.inputs[0])
      : value;
  };
  const sources = step.inputs.map(sourceOf);
  const isSmall = (value: number): boolean =>
    elementCount(at(unit.values, value).shape) * fewOfResult <= elementCount(shape);
  return !isPacked(dtype) && sources.filter((value) => !isSmall(value)).every((value) => !producers.has(value));
}

function readersOf({ values, steps }: Pick<UnitKernel, "values" | "steps">): readonly (readonly UnitStep[])[] {
  const readers = values.map((): UnitStep[] => []);
  for (const step of steps) for (const input of step.inputs) at(readers, input).push(step);
  return readers;
}

const joinKinds = ["Cat", "Permute", "Unary", "Cast"] as const;

/** Views that keep the order of elements. */
const rowMajorViews = ["Reshape", "Broadcast", "Squeeze"] as const;

/**
 * Whether each box of a step's operand is a box of its result, possibly with steps between its elements, so that a cat
 * before it need not be stored.
 */
export function joinsThrough(
  { values }: Pick<UnitKernel, "values">,
  step: UnitStep,
): step is Extract<UnitStep, { kind: (typeof joinKinds)[number] | (typeof rowMajorViews)[number] }> {
  const { kind } = step;
  if (isOneOf(joinKinds, kind)) return true;
  const shapeOf = (value: number): readonly number[] => at(values, value).shape;
  return isOneOf(rowMajorViews, kind) && mergesAxes(shapeOf(at(step.inputs, 0)), shapeOf(step.output));
}

/** Whether a view that keeps the order of elements splits no axis: each one of `output` ends where one of `input` does. */
function mergesAxes(input: readonly number[], output: readonly number[]): boolean {
  const endsOf = (shape: readonly number[]): readonly number[] =>
    shape.map((_, axis) => elementCount(shape.slice(0, axis + 1)));
  const ends = new Set([1, ...endsOf(input)]);
  return endsOf(output).every((end) => ends.has(end));
}

/**
 * Views and constants cost nothing where they are inlined. A packed float is read as fast as the same value in float,
 * and takes less memory.
 */
export function isFree({ values }: Pick<UnitKernel, "values">, step: UnitStep): boolean {
  if (step.kind !== "Cast") return isViewStep(step) || step.kind === "Full";
  const { dtype } = at(values, at(step.inputs, 0));
  return step.to === "float" && isPacked(dtype);
}

/** How the index of a step's operand differs from the index of its output; null if they are equal. */
function pathChange(
  { values }: Pick<UnitKernel, "values">,
  step: UnitStep,
  input: number,
): "view" | "stretched" | "contracted" | null {
  if (step.kind === "Matmul" || step.kind === "Linear" || step.kind === "GroupedMatmul") return "contracted";
  // A sort reads an element whenever it compares it.
  if (step.kind === "RandomBits" || step.kind === "Argsort") return "stretched";
  if (step.kind === "Set") return null;
  if (isViewStep(step) && step.kind !== "Expand") return "view";
  if (step.kind === "Cat" || step.kind === "Pad" || step.kind === "ScatterAdd" || step.kind === "Scan") return "view";
  if (step.kind === "IndexSelect" || step.kind === "Gather") {
    if (input === 1) return step.kind === "Gather" ? null : "stretched";
    // What is read at most once per element on average is not worth storing.
    const [read, made] = [at(step.inputs, 0), step.output].map((value) => elementCount(at(values, value).shape));
    return (made ?? 0) <= (read ?? 0) ? "view" : "stretched";
  }
  if (step.kind !== "Binary" && step.kind !== "Ternary" && step.kind !== "Expand") return null;
  const { shape } = at(values, at(step.inputs, input));
  return shape.some((extent, axis) => extent === 1 && at(values, step.output).shape[axis] !== 1) ? "stretched" : null;
}

// Lets values of a unit share scratch: space is free after the last phase that reads it. Before this, every value has a
// unique offset, which identifies it. Afterwards offsets overlap where lifetimes do not, by first fit in the order of
// the phases.

interface SharedScratch {
  readonly phases: readonly Phase[];
  readonly bytes: number;
}

/** The range of phases that use a value. The first phase writes it. */
interface Lifetime {
  readonly first: number;
  readonly last: number;
}

interface Place {
  readonly offset: number;
  readonly end: number;
  readonly last: number;
}

/** `sizes` maps the offset of each value to its aligned bytes. */
export function shareScratch(phases: readonly Phase[], sizes: ReadonlyMap<number, number>): SharedScratch {
  const { move, bytes } = placeScratch(phases.map(memoriesOf), sizes);
  return { phases: phases.map((phase) => movedPhase(phase, move)), bytes };
}

/** Of a value that no step keeps in memory. It must not be taken for the one that lies at an offset. */
const noPlace = -1;

interface ScratchPlaces {
  /** Where memory lies; other memory than scratch stays. */
  readonly move: (memory: NestMemory) => NestMemory;
  readonly bytes: number;
}

/** `uses` has the memory that each step uses, in order. Values that one step uses do not overlap. */
export function placeScratch(
  uses: readonly (readonly NestMemory[])[],
  sizes: ReadonlyMap<number, number>,
): ScratchPlaces {
  const lifetimes = lifetimesOf(uses);
  const offsets = new Map<number, number>();
  let live: readonly Place[] = [];
  let bytes = 0;
  for (const [name, { first, last }] of lifetimes) {
    live = live.filter((place) => place.last >= first);
    const size = sizes.get(name) ?? 0;
    const offset = firstGap(live, size);
    live = [...live, { offset, end: offset + size, last }].toSorted((a, b) => a.offset - b.offset);
    bytes = Math.max(bytes, offset + size);
    offsets.set(name, offset);
  }
  const move = (memory: NestMemory): NestMemory =>
    memory.kind === "scratch" ? { kind: "scratch", offset: offsets.get(memory.offset) ?? noPlace } : memory;
  return { move, bytes };
}

/** In order of first use. */
function lifetimesOf(uses: readonly (readonly NestMemory[])[]): ReadonlyMap<number, Lifetime> {
  const lifetimes = new Map<number, Lifetime>();
  for (const [i, memories] of uses.entries()) {
    for (const memory of memories) {
      if (memory.kind !== "scratch") continue;
      lifetimes.set(memory.offset, { first: lifetimes.get(memory.offset)?.first ?? i, last: i });
    }
  }
  return lifetimes;
}

/** The lowest offset with `size` free bytes. */
function firstGap(live: readonly Place[], size: number): number {
  let offset = 0;
  for (const place of live) {
    if (place.offset - offset >= size) return offset;
    offset = Math.max(offset, place.end);
  }
  return offset;
}

export function memoriesOf(phase: Phase): readonly NestMemory[] {
  if (phase.kind === "contraction") {
    const { a, b, bias, c } = phase;
    return [a, b, ...(bias === null ? [] : [bias]), c].map(({ memory }) => memory);
  }
  const { body, target } = phase.nest;
  const loads = body.flatMap((instruction) => (instruction.kind === "load" ? [instruction.access.memory] : []));
  return [...loads, target.memory];
}

export function movedPhase<P extends Phase>(phase: P, move: ScratchPlaces["move"]): P;
export function movedPhase(phase: Phase, move: ScratchPlaces["move"]): Phase {
  const inMemory = <T extends { readonly memory: NestMemory }>(item: T): T => ({ ...item, memory: move(item.memory) });
  if (phase.kind === "nest") return { ...phase, nest: movedNest(phase.nest, move) };
  const { a, b, bias, c } = phase;
  return { ...phase, a: inMemory(a), b: inMemory(b), bias: bias && inMemory(bias), c: inMemory(c) };
}

export function movedNest(nest: Nest, move: ScratchPlaces["move"]): Nest {
  const body = nest.body.map((instruction): Instruction => {
    if (instruction.kind !== "load") return instruction;
    const { access } = instruction;
    return { ...instruction, access: { ...access, memory: move(access.memory) } };
  });
  return { ...nest, body, target: { ...nest.target, memory: move(nest.target.memory) } };
}
