/** The code of a nest for groups of neighbours along its innermost loop: loads, expressions and stores. */
import { type DType, dtypes, isPacked } from "../../numerics/dtype.ts";
import type { Expression } from "../../numerics/scalar/expression.ts";
import { at, invariant, unreachable } from "../../support/invariant.ts";
import type { Code } from "../../support/wasm/encoding.ts";
import type { FunctionWriter } from "../../support/wasm/function-writer.ts";
import {
  get,
  type LaneBits,
  load,
  loadLane,
  shuffleWords,
  type Place,
  store,
  storeLane,
  vector,
  wordsConstant,
} from "../../support/wasm/instructions.ts";
import { coefficientOf } from "../nests/affine.ts";
import type { Access, IndexInstruction, Loop, Nest } from "../nests/nest.ts";
import { evaluateLanes, groupElements, type Lanes } from "./lane-expressions.ts";
import { type Pointers, stepBytes } from "./lane-loops.ts";
import { wordCodings } from "./lane-words.ts";

/** The nest under construction, and the pointers of its accesses. */
export interface LaneTarget {
  readonly nest: Nest;
  readonly writer: FunctionWriter;
  readonly pointers: Pointers;
}

/** Where a stream is, relative to the pointers: `index` iterations of a loop further. */
export interface Stream {
  readonly loop: Loop;
  readonly index: number;
}

/** Up to four neighbours along the row, the first of them `first` after the stream's. */
export interface LaneRows {
  readonly row: Loop;
  readonly first: number;
  readonly count: number;
  readonly stream: Stream;
}

export function placeGroup({ pointers }: LaneTarget, access: Access, { row, first, count, stream }: LaneRows): Group {
  const step = coefficientOf(access.offset, row.atom);
  const pointer = pointers.get(access);
  invariant(pointer !== undefined, "every access has a pointer");
  const offset = stream.index * stepBytes(access, stream.loop) + first * stepBytes(access, row);
  return { pointer, offset, dtype: access.dtype, step, count };
}

/** Computes the instructions that are constant along the row, once, before it. */
export function writeInvariant(target: LaneTarget, row: Loop, stream: Stream): ReadonlyMap<number, Lanes> {
  const { nest } = target;
  const last = nest.body.length - 1;
  const known = new Map<number, Lanes>();
  for (const [i, step] of nest.body.entries()) {
    if (i === last) break;
    const same =
      step.kind === "load"
        ? coefficientOf(step.access.offset, row.atom) === 0
        : step.kind === "apply" && step.operands.every((operand) => known.has(operand));
    if (same) writeStep(target, known, i, { row, first: 0, count: groupElements, stream });
  }
  return known;
}

/** Computes instruction `i` into `values`. */
export function writeStep(target: LaneTarget, values: Map<number, Lanes>, i: number, group: LaneRows): void {
  const { nest, writer } = target;
  const step = at(nest.body, i);
  switch (step.kind) {
    case "load":
      values.set(i, loadGroup(writer, placeGroup(target, step.access, group)));
      break;
    case "apply":
      values.set(i, evaluateLanes(writer, step.expression, operandsOf(values, step.operands)));
      break;
    case "index":
      failIndex(step);
      break;
    default:
      unreachable(step);
  }
}

function failIndex(step: IndexInstruction): never {
  invariant(false, "indices of whole tensors are computed in JavaScript", step);
}

/** Whether the loop's neighbours are neighbours in memory where those of the row are not, as in sums of rows. */
export function gathersAlong(nest: Nest, { row, count }: LaneRows, loop: Loop): boolean {
  return (
    count === groupElements && nest.body.some((step) => step.kind === "load" && isGathered(step.access, row, loop))
  );
}

function isGathered(access: Access, row: Loop, loop: Loop): boolean {
  return (
    dtypes[access.dtype].bytes === 4 &&
    coefficientOf(access.offset, loop.atom) === 1 &&
    coefficientOf(access.offset, row.atom) > 1
  );
}

/**
 * The values of such loads for four iterations of the loop: four vectors, one of each row, are transposed. Element by
 * element, every vector would take four loads.
 */
export function gatherLoads(target: LaneTarget, group: LaneRows, loop: Loop): ReadonlyMap<number, readonly Lanes[]> {
  const { nest, writer } = target;
  const loads = nest.body.flatMap((step, i) => {
    if (step.kind !== "load" || !isGathered(step.access, group.row, loop)) return [];
    const place = placeGroup(target, step.access, group);
    const rows = Array.from({ length: groupElements }, (_, lane) =>
      get(writer.keep(load("v128.load", element(place, lane)))),
    );
    const [a = [], b = [], c = [], d = []] = rows;
    const pairs = (
      [
        [0, 4, 1, 5],
        [2, 6, 3, 7],
      ] as const
    ).map((words) => [shuffleWords(words, a, b), shuffleWords(words, c, d)].map((code) => get(writer.keep(code))));
    const values = pairs.flatMap(([ab = [], cd = []]) =>
      (
        [
          [0, 1, 4, 5],
          [2, 3, 6, 7],
        ] as const
      ).map((words): Lanes => [writer.keep(shuffleWords(words, ab, cd))]),
    );
    return [[i, values] as const];
  });
  return new Map(loads);
}

export function laneValue(values: ReadonlyMap<number, Lanes>, instruction: number): Lanes {
  const value = values.get(instruction);
  invariant(value !== undefined, "operands come before what uses them", { instruction });
  return value;
}

function operandsOf(values: ReadonlyMap<number, Lanes>, operands: readonly number[]): readonly Lanes[] {
  return operands.map((operand) => laneValue(values, operand));
}

/**
 * A group of each stream; `hoisted` has a stream's values. All is loaded before anything is stored: the engine then
 * computes the groups side by side, and no load waits for a store 4 KiB away, whose address looks alike.
 */
export function writeElements(
  target: LaneTarget,
  groups: readonly LaneRows[],
  hoisted: readonly ReadonlyMap<number, Lanes>[],
): void {
  const { nest, writer } = target;
  const last = nest.body.length - 1;
  writer.block(() => {
    const loaded = groups.map((group, stream) => {
      const values = new Map(hoisted[stream]);
      for (let i = 0; i < last; i++) {
        if (!values.has(i) && at(nest.body, i).kind === "load") writeStep(target, values, i, group);
      }
      return { group, values };
    });
    for (const { group, values } of loaded) {
      for (let i = 0; i < last; i++) if (!values.has(i)) writeStep(target, values, i, group);
      const step = at(nest.body, last);
      const stored = placeGroup(target, nest.target, group);
      switch (step.kind) {
        case "load":
          // A plain copy moves the stored bits unchanged.
          storeStored(writer, stored, loadStored(writer, placeGroup(target, step.access, group)));
          break;
        case "apply":
          storeExpression(writer, stored, step.expression, operandsOf(values, step.operands));
          break;
        case "index":
          failIndex(step);
          break;
        default:
          unreachable(step);
      }
    }
  });
}

/** The value's last rounding and its packing into words are one step. */
export function storeExpression(
  writer: FunctionWriter,
  group: Group,
  value: Expression,
  operands: readonly Lanes[],
): void {
  const unrounded = value.kind === "round" && value.to === group.dtype ? value.operand : value;
  storeGroup(writer, group, evaluateLanes(writer, unrounded, operands));
}

// Loads and stores of up to four elements. Contiguous elements move as one vector, one element for all lanes is splat,
// and all others move lane by lane.

/** The memory of a group. */
interface Group extends Place {
  readonly dtype: DType;
  /** From one element to the next, in elements. */
  readonly step: number;
  /** From 1 to 4. The contents of further lanes are undefined. */
  readonly count: number;
}

function bitsOf(dtype: DType): LaneBits {
  return bitsOfBytes[dtypes[dtype].bytes];
}

const bitsOfBytes = { 1: 8, 2: 16, 4: 32, 8: 64 } as const;

/** The elements as stored. Words of half and bfloat16, and bytes of bool, are extended to 32 bits. */
function loadStored(writer: FunctionWriter, group: Group): Lanes {
  if (group.step === 0) return loadSpread(writer, group);
  const bits = bitsOf(group.dtype);
  if (group.step === 1 && group.count === groupElements) {
    switch (bits) {
      case 64:
        return [0, 16].map((bytes) => writer.keep(load("v128.load", { ...group, offset: group.offset + bytes })));
      case 32:
        return [writer.keep(load("v128.load", group))];
      case 16:
        return [writer.keep(load("v128.load16x4_u", group))];
      case 8:
        return [writer.keep(extended(8, load("v128.load32_zero", group)))];
    }
  }
  const lanes = bits === 64 ? 2 : groupElements;
  return Array.from({ length: groupElements / lanes }, (_, part) => {
    const count = Math.max(0, Math.min(lanes, group.count - part * lanes));
    let code = wordsConstant(0);
    for (let lane = 0; lane < count; lane++) code = loadLane(bits, element(group, part * lanes + lane), lane, code);
    return writer.keep(extended(bits, code));
  });
}

function loadSpread(writer: FunctionWriter, group: Group): Lanes {
  const bits = bitsOf(group.dtype);
  const spread = writer.keep(extended(bits, load(`v128.load${bits}_splat`, group)));
  return bits === 64 ? [spread, spread] : [spread];
}

function element(group: Group, i: number): Place {
  return { pointer: group.pointer, offset: group.offset + i * group.step * dtypes[group.dtype].bytes };
}

/** Extends low lanes of fewer than 32 bits to 32-bit lanes. */
function extended(bits: LaneBits, code: Code): Code {
  if (bits === 8) return vector("i32x4.extend_low_i16x8_u", vector("i16x8.extend_low_i8x16_u", code));
  return bits === 16 ? vector("i32x4.extend_low_i16x8_u", code) : code;
}

/** The elements as values of the dtype's compute type. */
function loadGroup(writer: FunctionWriter, group: Group): Lanes {
  const stored = loadStored(writer, group);
  const { dtype } = group;
  if (!isPacked(dtype)) return stored;
  return stored.map((part) => writer.keep(wordCodings[dtype].decode(writer, part)));
}

/** Stores values as `loadStored` returns them. */
function storeStored(writer: FunctionWriter, group: Group, value: Lanes): void {
  const bits = bitsOf(group.dtype);
  const whole = group.step === 1 && group.count === groupElements;
  if (bits >= 32 && whole) {
    for (const [part, vectorLocal] of value.entries()) {
      writer.emit(store({ ...group, offset: group.offset + 16 * part }, get(vectorLocal)));
    }
    return;
  }
  const packed = bits >= 32 ? value : value.map((part) => writer.keep(narrowed(bits, get(part))));
  const first = get(at(packed, 0));
  if (whole) {
    writer.emit(storeLane(bits === 16 ? 64 : 32, group, 0, first));
    return;
  }
  const lanes = bits === 64 ? 2 : groupElements;
  for (let i = 0; i < group.count; i++) {
    writer.emit(storeLane(bits, element(group, i), i % lanes, get(at(packed, Math.floor(i / lanes)))));
  }
}

/** Packs the low bits of 32-bit lanes into the low part of the vector. */
function narrowed(bits: LaneBits, code: Code): Code {
  if (bits === 16) return vector("i16x8.narrow_i32x4_u", code, wordsConstant(0));
  const low = vector("v128.and", code, wordsConstant(0xff));
  return vector("i8x16.narrow_i16x8_u", vector("i16x8.narrow_i32x4_u", low, wordsConstant(0)), wordsConstant(0));
}

/** Stores values of the dtype's compute type. It rounds float32 to half and bfloat16. */
function storeGroup(writer: FunctionWriter, group: Group, value: Lanes): void {
  const { dtype } = group;
  if (!isPacked(dtype)) return storeStored(writer, group, value);
  const words = value.map((part) => writer.keep(wordCodings[dtype].encode(writer, part)));
  storeStored(writer, group, words);
}
