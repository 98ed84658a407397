/** Selects the nests of a kernel that run in WebAssembly, and compiles their functions as one module. */
import { dtypes } from "../../numerics/dtype.ts";
import { sumBlock } from "../../numerics/sum-order.ts";
import { at, invariant } from "../../support/invariant.ts";
import { encodeModule, type WasmFunction } from "../../support/wasm/encoding.ts";
import { createFunctionWriter } from "../../support/wasm/function-writer.ts";
import { advance, get, number, set, whenZero } from "../../support/wasm/instructions.ts";
import { instantiateWasm, isShared, type WasmMemory } from "../../support/webassembly.ts";
import { coefficientOf } from "../nests/affine.ts";
import { type Access, accumulatorLevels, type Loop, type NestMemory, type Nest } from "../nests/nest.ts";
import {
  evaluateLanes,
  groupElements,
  hasLaneForm,
  type Lanes,
  partsOfType,
  splatConstant,
} from "./lane-expressions.ts";
import {
  placeGroup,
  type LaneRows,
  storeExpression,
  type LaneTarget,
  laneValue,
  writeElements,
  writeInvariant,
  writeStep,
} from "./lane-groups.ts";
import { stepBytes, writeLoop, writeLoops } from "./lane-loops.ts";

/** `auto`: where it pays. `always`: for every nest that WebAssembly supports, however small. */
export type SimdUse = "auto" | "always" | "never";

/** Below this number of elements, compiling the module takes longer than the nest. */
const fewestElements = 1024;

export function usesLanes(nest: Nest, use: SimdUse): boolean {
  switch (use) {
    case "never":
      return false;
    case "always":
      return hasLanes(nest);
    case "auto": {
      const elements = [...nest.loops, ...nest.reducedLoops].reduce((count, { extent }) => count * extent, 1);
      // Without a loop over neighbours, only one of the four lanes would be used.
      return elements >= fewestElements && (nest.loops.at(-1)?.extent ?? 1) > 1 && hasLanes(nest);
    }
  }
}

export interface CompiledNest {
  readonly operands: LaneNest["operands"];
  /** Takes the byte addresses of `operands`. */
  readonly run: (...addresses: readonly number[]) => void;
}

/** The compiled functions by nest. `scratch` is the address of the scratch. */
export function compileLaneNests(
  nests: readonly Nest[],
  memory: WasmMemory,
  scratch: number,
): ReadonlyMap<Nest, CompiledNest> {
  if (nests.length === 0) return new Map();
  const written = nests.map((nest, i) => ({ nest, ...writeLaneNest(nest, `nest${i}`, scratch) }));
  const kind = isShared(memory) ? "shared" : "unshared";
  const functions = instantiateWasm(
    encodeModule(
      written.map(({ code }) => code),
      kind,
    ),
    memory,
  );
  return new Map(
    written.map(({ nest, code, operands }) => {
      const run = functions[code.name];
      invariant(run !== undefined, "a module exports its functions", { name: code.name });
      return [nest, { operands, run }];
    }),
  );
}

/**
 * Writes a nest as a WebAssembly function that computes four elements at a time along the innermost loop over elements.
 * The loops of a reduction run inside, with one accumulator per element. Each element is accumulated in its defined
 * order; only neighbouring elements are computed together.
 */
interface LaneNest {
  readonly code: WasmFunction;
  /** The operands whose byte addresses are the function's parameters. */
  readonly operands: readonly Exclude<NestMemory, { kind: "scratch" }>[];
}

/**
 * Whether WebAssembly supports the nest: accesses are strided, and no op exists only in JavaScript. The few elements that
 * are computed from indices of whole tensors are left to JavaScript.
 */
function hasLanes(nest: Nest): boolean {
  const expressions = nest.body.flatMap((step) => (step.kind === "apply" ? [step.expression] : []));
  const isStrided = ({ offset }: Access): boolean =>
    offset.terms.every(({ atom }) => at(nest.atoms, atom).kind === "loop");
  const hasIndices = nest.body.some(({ kind }) => kind === "index");
  return (
    nest.ordered === undefined && !hasIndices && expressions.every(hasLaneForm) && accessesOf(nest).every(isStrided)
  );
}

function accessesOf(nest: Nest): readonly Access[] {
  return [...nest.body.flatMap((step) => (step.kind === "load" ? [step.access] : [])), nest.target];
}

/** Groups per iteration of a loop. Unrolling amortizes the loop's overhead and the latency of accumulation. */
const unrolled = { elementwise: 4, longElementwise: 1, rows: 8, longRows: 2, gathered: 2 } as const;

/** A body with more computations, including loads, counts as long. */
const longBody = 8;

/** `scratch` is the address of the scratch. `hasLanes(nest)` must be true. */
function writeLaneNest(nest: Nest, name: string, scratch: number): LaneNest {
  const operands: Exclude<NestMemory, { kind: "scratch" }>[] = [];
  const parameterOf = (memory: Exclude<NestMemory, { kind: "scratch" }>): number => {
    const known = operands.findIndex(({ kind, position }) => kind === memory.kind && position === memory.position);
    return known >= 0 ? known : operands.push(memory) - 1;
  };
  const bases = accessesOf(nest).map((access) => {
    const { memory } = access;
    const constant = access.offset.constant * dtypes[access.dtype].bytes;
    if (memory.kind === "scratch") return { access, code: number(scratch + memory.offset + constant) };
    return { access, code: [...get(parameterOf(memory)), ...number(constant), 0x6a] };
  });
  const writer = createFunctionWriter(operands.length);
  const pointers = new Map<Access, number>();
  for (const { access, code } of bases) {
    const pointer = writer.local("i32");
    pointers.set(access, pointer);
    writer.emit(set(pointer, code));
  }
  writeNest({ nest, writer, pointers });
  const code = { name, parameters: operands.length, locals: writer.locals(), body: writer.body() };
  return { code, operands };
}

const lineBytes = 64;

/** Rows of a tile. It has as many columns as an unrolled block. */
const tileRows = 16;

/** A loop of one iteration, for a value of one element. No access moves along it. */
const noLoop: Loop = { atom: -1, extent: 1 };

function writeNest(target: LaneTarget): void {
  const { nest, writer, pointers } = target;
  const row = nest.loops.at(-1) ?? noLoop;
  const column = nest.loops.at(-2);
  if (column === undefined || !crosses(nest, row, column)) {
    writeLoops(writer, pointers, nest.loops.slice(0, -1), () => {
      writeRow(target, row, noLoop);
    });
    return;
  }
  const blocks = Math.floor(column.extent / tileRows);
  const rest = column.extent - blocks * tileRows;
  writeLoops(writer, pointers, nest.loops.slice(0, -2), () => {
    const step = (access: Access): number => stepBytes(access, column) * tileRows;
    writeLoop(writer, pointers, blocks, step, () => writeRow(target, row, { ...column, extent: tileRows }));
    if (rest === 0) return;
    for (const [access, pointer] of pointers) writer.emit(advance(pointer, blocks * step(access)));
    writer.block(() => writeRow(target, row, { ...column, extent: rest }));
    for (const [access, pointer] of pointers) writer.emit(advance(pointer, -blocks * step(access)));
  });
}

/**
 * Whether an access is contiguous along the outer loop and strided along the row, as in a transpose. Such a nest runs
 * in tiles, so that a cache line is used completely while it is cached.
 */
function crosses(nest: Nest, row: Loop, column: Loop): boolean {
  if (nest.reduction !== null) return false;
  return accessesOf(nest).some((access) => {
    const [along, across] = [stepBytes(access, column), stepBytes(access, row)];
    return along < lineBytes && across >= lineBytes;
  });
}

/** Runs the row once for every index of `column`, block by block. */
function writeRow(target: LaneTarget, row: Loop, column: Loop): void {
  const { nest, writer, pointers } = target;
  const hoists = nest.reduction === null && column.extent === 1;
  const hoisted = hoists ? writeInvariant(target, row) : new Map<number, Lanes>();
  const blockElements = groupsPerBlock(nest, row) * groupElements;
  const blocks = Math.floor(row.extent / blockElements);
  const write = (first: number, elements: number): void => {
    const counts = Array.from({ length: Math.ceil(elements / groupElements) }, (_, i) =>
      Math.min(groupElements, elements - i * groupElements),
    );
    const groups = counts.map((count, i) => ({ row, first: first + i * groupElements, count }));
    writeLoops(writer, pointers, [column], () => {
      if (nest.reduction === null) writeElements(target, groups, hoisted);
      else writeReduction(target, nest.reduction, groups);
    });
  };
  const step = (access: Access): number => stepBytes(access, row) * blockElements;
  writeLoop(writer, pointers, blocks, step, () => write(0, blockElements));
  const rest = row.extent - blocks * blockElements;
  if (rest > 0) writer.block(() => write(blocks * blockElements, rest));
}

function groupsPerBlock(nest: Nest, row: Loop): number {
  const long = nest.body.length > longBody;
  if (nest.reduction === null) return long ? unrolled.longElementwise : unrolled.elementwise;
  const gathers = accessesOf(nest).some(({ offset }) => coefficientOf(offset, row.atom) > 1);
  if (gathers) return unrolled.gathered;
  return (long ? unrolled.longRows : unrolled.rows) / partsOfType[nest.reduction.type];
}

// Reductions for groups of neighbours, each element in the order of numerics/sum-order.ts, with one accumulator per
// level and group. A counter per level holds the number of terms that its block still lacks.

function writeReduction(
  target: LaneTarget,
  reduction: NonNullable<Nest["reduction"]>,
  groups: readonly LaneRows[],
): void {
  const { nest, writer, pointers } = target;
  const { type, identity, combine, finish } = reduction;
  const levels = Array.from({ length: accumulatorLevels(nest) }, (_, level) => level);
  const identities = (): Lanes =>
    Array.from({ length: partsOfType[type] }, () => writer.keep(splatConstant(type, identity)));
  const sums = groups.map((group) => ({ group, sum: levels.map(identities) }));
  const assign = (to: Lanes, from: Lanes): void => {
    for (const [part, local] of to.entries()) writer.emit(set(local, get(at(from, part))));
  };
  const counters = levels.slice(1).map(() => {
    const counter = writer.local("i32");
    writer.emit(set(counter, number(sumBlock)));
    return counter;
  });
  /** Adds the accumulators of a level to those of the next. */
  const add = (level: number): void => {
    for (const { sum } of sums) {
      const [part, whole] = [at(sum, level), at(sum, level + 1)];
      writer.block(() => {
        assign(whole, evaluateLanes(writer, combine, [whole, part]));
      });
    }
  };
  /** A block of the level is full: its sum is one more term of the next level. */
  const carry = (level: number): void => {
    if (level + 1 >= levels.length) return;
    add(level);
    for (const { sum } of sums) {
      for (const local of at(sum, level)) writer.emit(set(local, splatConstant(type, identity)));
    }
    count(level + 1);
  };
  const count = (level: number): void => {
    const counter = counters[level];
    if (counter === undefined) return;
    writer.emit(advance(counter, -1));
    writer.emit(
      whenZero(
        counter,
        writer.collect(() => {
          writer.emit(set(counter, number(sumBlock)));
          carry(level);
        }),
      ),
    );
  };
  const accumulate = (): void => {
    for (const { group, sum } of sums) {
      writer.block(() => {
        const values = new Map<number, Lanes>();
        for (const i of nest.body.keys()) writeStep(target, values, i, group);
        const next = evaluateLanes(writer, combine, [at(sum, 0), laneValue(values, nest.body.length - 1)]);
        assign(at(sum, 0), next);
      });
    }
  };
  const outer = nest.reducedLoops.slice(0, -1);
  const inner = nest.reducedLoops.at(-1);
  if (levels.length > 1 && inner !== undefined && (outer.length === 0 || inner.extent % sumBlock === 0)) {
    // Blocks do not cross the innermost loop, so single terms need no counter.
    const step = (access: Access): number => stepBytes(access, inner);
    const blocks = Math.floor(inner.extent / sumBlock);
    writeLoops(writer, pointers, outer, () => {
      const blockStep = (access: Access): number => sumBlock * step(access);
      writeLoop(writer, pointers, blocks, blockStep, () => {
        writeLoop(writer, pointers, sumBlock, step, accumulate);
        carry(0);
      });
      const rest = inner.extent - blocks * sumBlock;
      if (rest === 0) return;
      for (const [access, pointer] of pointers) writer.emit(advance(pointer, blocks * blockStep(access)));
      writeLoop(writer, pointers, rest, step, accumulate);
      for (const [access, pointer] of pointers) writer.emit(advance(pointer, -blocks * blockStep(access)));
    });
  } else {
    writeLoops(writer, pointers, nest.reducedLoops, () => {
      accumulate();
      count(0);
    });
  }
  for (const level of levels.slice(1)) add(level - 1);
  for (const { group, sum } of sums) {
    const last = at(sum, sum.length - 1);
    writer.block(() => storeExpression(writer, placeGroup(target, nest.target, group), finish, [last]));
  }
}
