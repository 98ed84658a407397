/** Selects the nests of a kernel that run in WebAssembly, and compiles their functions as one module. */
import { dtypes } from "../../numerics/dtype.ts";
import { sumBlock } from "../../numerics/sum-order.ts";
import { at, invariant } from "../../support/invariant.ts";
import { encodeModule, type WasmFunction } from "../../support/wasm/encoding.ts";
import { createFunctionWriter } from "../../support/wasm/function-writer.ts";
import { advance, get, number, set, whenZero } from "../../support/wasm/instructions.ts";
import { instantiateWasm, isShared, type WasmMemory } from "../../support/webassembly.ts";
import { coefficientOf } from "../nests/affine.ts";
import { type Access, nestAccesses, accumulatorLevels, type Loop, type NestMemory, type Nest } from "../nests/nest.ts";
import {
  evaluateLanes,
  groupElements,
  hasLaneForm,
  type Lanes,
  partsOfType,
  splatConstant,
} from "./lane-expressions.ts";
import {
  gatherLoads,
  gathersAlong,
  placeGroup,
  type LaneRows,
  storeExpression,
  type LaneTarget,
  type Stream,
  laneValue,
  writeElements,
  writeInvariant,
  writeStep,
} from "./lane-groups.ts";
import { stepBytes, writeLoop, writeLoops, writeRest } from "./lane-loops.ts";

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
    nest.ordered === undefined && !hasIndices && expressions.every(hasLaneForm) && nestAccesses(nest).every(isStrided)
  );
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
  const bases = nestAccesses(nest).map((access) => {
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
  const outer = nest.loops.slice(0, -1);
  if (column !== undefined && crosses(nest, row, column)) {
    const blocks = Math.floor(column.extent / tileRows);
    writeLoops(writer, pointers, outer.slice(0, -1), () => {
      const step = (access: Access): number => stepBytes(access, column) * tileRows;
      writeLoop(writer, pointers, blocks, step, () => writeRow(target, row, { ...column, extent: tileRows }));
      writeRest(writer, pointers, column, blocks * tileRows, (rest) => writeRow(target, row, rest));
    });
    return;
  }
  switch (streamedLoop(nest, row, column)) {
    case "none":
      return writeLoops(writer, pointers, outer, () => writeRow(target, row, noLoop));
    case "row": {
      const part = Math.floor(row.extent / streamCount / groupElements) * groupElements;
      return writeLoops(writer, pointers, outer, () => {
        writeRow(target, { ...row, extent: part }, noLoop, streamsAlong(row, part));
        writeRest(writer, pointers, row, streamCount * part, (rest) => writeRow(target, rest, noLoop));
      });
    }
    case "column": {
      const loop = column ?? noLoop;
      const times = Math.floor(loop.extent / streamCount);
      const step = (access: Access): number => stepBytes(access, loop) * streamCount;
      return writeLoops(writer, pointers, outer.slice(0, -1), () => {
        writeLoop(writer, pointers, times, step, () => writeRow(target, row, noLoop, streamsAlong(loop, 1)));
        writeRest(writer, pointers, loop, times * streamCount, (rest) => {
          writeLoops(writer, pointers, [rest], () => writeRow(target, row, noLoop));
        });
      });
    }
  }
}

// Streams: elements in several pages of memory, which an iteration computes side by side. A core's prefetcher follows
// each stream within its page, so that several read about 1.5 times as fast as one.

const streamCount = 4;

const oneStream: readonly Stream[] = [{ loop: noLoop, index: 0 }];

function streamsAlong(loop: Loop, distance: number): readonly Stream[] {
  return Array.from({ length: streamCount }, (_, i) => ({ loop, index: i * distance }));
}

/** With fewer neighbours, all memory of a nest is in a cache, where one stream is faster. */
const fewestNeighbours = 2 ** 18;

/** Blocks of a norm's rows have more, of which the results go to memory. */
const fewestInRows = 2 ** 15;

/** Elements of a stream in rows: those of a page. */
const fewestInRow = 1024;

/** Streams are parts of a long row, or neighbouring rows of the loop around it. */
function streamedLoop(nest: Nest, row: Loop, column: Loop | undefined): "none" | "row" | "column" {
  const isContiguous = nestAccesses(nest).every(({ offset }) => coefficientOf(offset, row.atom) <= 1);
  if (nest.reduction !== null || !isContiguous) return "none";
  if (row.extent >= fewestNeighbours) return "row";
  if (column === undefined || column.extent < streamCount || row.extent < fewestInRow) return "none";
  return row.extent * column.extent >= fewestInRows ? "column" : "none";
}

/**
 * Whether an access is contiguous along the outer loop and strided along the row, as in a transpose. Such a nest runs
 * in tiles, so that a cache line is used completely while it is cached.
 */
function crosses(nest: Nest, row: Loop, column: Loop): boolean {
  if (nest.reduction !== null) return false;
  return nestAccesses(nest).some((access) => {
    const [along, across] = [stepBytes(access, column), stepBytes(access, row)];
    return along < lineBytes && across >= lineBytes;
  });
}

/** Runs the rows of all streams once for every index of `column`, block by block. */
function writeRow(target: LaneTarget, row: Loop, column: Loop, streams = oneStream): void {
  const { nest, writer, pointers } = target;
  const hoists = nest.reduction === null && column.extent === 1;
  const hoisted = hoists ? streams.map((stream) => writeInvariant(target, row, stream)) : [];
  const blockElements = groupsPerBlock(nest, row) * groupElements;
  const blocks = Math.floor(row.extent / blockElements);
  const write = (first: number, elements: number): void => {
    const counts = Array.from({ length: Math.ceil(elements / groupElements) }, (_, i) =>
      Math.min(groupElements, elements - i * groupElements),
    );
    const groups = counts.map((count, i) =>
      streams.map((stream): LaneRows => ({ row, first: first + i * groupElements, count, stream })),
    );
    writeLoops(writer, pointers, [column], () => {
      if (nest.reduction !== null) return writeReduction(target, nest.reduction, groups.flat());
      for (const each of groups) writeElements(target, each, hoisted);
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
  const gathers = nestAccesses(nest).some(({ offset }) => coefficientOf(offset, row.atom) > 1);
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
  /** `steps` neighbours along the loop. */
  const accumulate = (loop: Loop, steps: number): void => {
    for (const { group, sum } of sums) {
      writer.block(() => {
        const gathered =
          steps === groupElements ? gatherLoads(target, group, loop) : new Map<number, readonly Lanes[]>();
        for (let step = 0; step < steps; step++) {
          writer.block(() => {
            const values = new Map<number, Lanes>();
            for (const i of nest.body.keys()) {
              const known = gathered.get(i)?.[step];
              if (known !== undefined) values.set(i, known);
              else writeStep(target, values, i, { ...group, stream: { loop, index: step } });
            }
            const next = evaluateLanes(writer, combine, [at(sum, 0), laneValue(values, nest.body.length - 1)]);
            assign(at(sum, 0), next);
          });
        }
      });
    }
  };
  /** `times` iterations of the innermost loop, several a turn where they are read together. */
  const accumulateAll = (loop: Loop, times: number): void => {
    const steps = groups.every((group) => gathersAlong(nest, group, loop)) ? groupElements : 1;
    const whole: Loop = { ...loop, extent: times };
    const turns = Math.floor(times / steps);
    writeLoop(
      writer,
      pointers,
      turns,
      (access) => steps * stepBytes(access, loop),
      () => accumulate(loop, steps),
    );
    writeRest(writer, pointers, whole, turns * steps, (rest) => {
      writeLoops(writer, pointers, [rest], () => accumulate(loop, 1));
    });
  };
  const outer = nest.reducedLoops.slice(0, -1);
  const inner = nest.reducedLoops.at(-1) ?? noLoop;
  if (levels.length === 1) {
    writeLoops(writer, pointers, outer, () => accumulateAll(inner, inner.extent));
  } else if (outer.length === 0 || inner.extent % sumBlock === 0) {
    // Blocks do not cross the innermost loop, so single terms need no counter.
    const blocks = Math.floor(inner.extent / sumBlock);
    writeLoops(writer, pointers, outer, () => {
      const blockStep = (access: Access): number => sumBlock * stepBytes(access, inner);
      writeLoop(writer, pointers, blocks, blockStep, () => {
        accumulateAll(inner, sumBlock);
        carry(0);
      });
      writeRest(writer, pointers, inner, blocks * sumBlock, (rest) => accumulateAll(rest, rest.extent));
    });
  } else {
    writeLoops(writer, pointers, nest.reducedLoops, () => {
      accumulate(noLoop, 1);
      count(0);
    });
  }
  for (const level of levels.slice(1)) add(level - 1);
  for (const { group, sum } of sums) {
    const last = at(sum, sum.length - 1);
    writer.block(() => storeExpression(writer, placeGroup(target, nest.target, group), finish, [last]));
  }
}
