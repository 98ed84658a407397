/**
 * The inputs and the output of a primitive on a device in every form: which matrices they are, how they lie in memory,
 * and the expected elements of the result.
 *
 *     tp-columnwise            A: rows of one matrix            B: the device's own weight      C = A B
 *     tp-rowwise, tp-allreduce A, B: the device's own           C = the sum of the devices' A B, its rows scattered or not
 */
import { at, unreachable } from "../../../src/support/invariant.ts";
import type { Matrices } from "../../../src/numerics/tensor/random-matrices.ts";
import type { Form, Problem } from "../primitives.ts";

/** Rows `first` to `first + count` of a matrix; a device's memory holds such ranges consecutively. */
export interface RowPiece {
  readonly first: number;
  readonly count: number;
}

export interface Layout {
  readonly problem: Problem;
  readonly form: Form;
  /** Iterations of the loop of form `collective`. */
  readonly chunks: number;
  /** Tensors that hold the rows of the result, one range after the other. */
  readonly outputs: number;
}

/** The bytes of input number `position` on a device. */
export type Inputs = (layout: Layout, position: number, rank: number) => Uint8Array;

/** Inputs may be gigabytes, so those that several implementations share are made once. */
export function createInputs(matrices: Matrices): Inputs {
  const made = new Map<string, Uint8Array>();
  return (layout, position, rank) => {
    const input = inputOf(layout, position, rank);
    const name = JSON.stringify(input);
    const bytes = made.get(name) ?? bytesOf(input, matrices);
    made.set(name, bytes);
    return bytes;
  };
}

function bytesOf({ key, columns, rows }: Input, matrices: Matrices): Uint8Array {
  const total = rows.reduce((sum, { count }) => sum + count, 0);
  const bytes = new Uint8Array(total * columns * matrices.width);
  let offset = 0;
  for (const { first, count } of rows) {
    matrices.fill(key, first * columns, count * columns, bytes, offset);
    offset += count * columns * matrices.width;
  }
  return bytes;
}

interface Input {
  readonly key: string;
  readonly columns: number;
  readonly rows: readonly RowPiece[];
}

function inputOf({ problem, form, chunks }: Layout, position: number, rank: number): Input {
  const { primitive, m, n, k, devices } = problem;
  const whole = [{ first: 0, count: m }];
  switch (primitive) {
    case "tp-columnwise":
      if (position === 1) return { key: `B${rank}`, columns: k, rows: [{ first: 0, count: n }] };
      return {
        key: "A",
        columns: k,
        rows: form === "compute-only" ? whole : shardedRows(form, m, devices, chunks, rank),
      };
    case "tp-rowwise":
    case "tp-allreduce":
      if (form === "communication-only") return { key: `P${rank}`, columns: n, rows: whole };
      if (position === 1) return { key: `B${rank}`, columns: n, rows: [{ first: 0, count: k }] };
      return { key: `A${rank}`, columns: k, rows: whole };
    default:
      return unreachable(primitive);
  }
}

/** The rows of output number `position` that a device holds, in memory order. */
export function outputRows(
  { problem, form, chunks, outputs }: Layout,
  position: number,
  rank: number,
): readonly RowPiece[] {
  const { primitive, devices } = problem;
  const count = problem.m / outputs;
  const first = position * count;
  if (primitive !== "tp-rowwise" || form === "compute-only") return [{ first, count }];
  return shardedRows(form, count, devices, chunks, rank).map((piece) => ({ ...piece, first: first + piece.first }));
}

/** Columns of the result on each device. */
export function outputColumns({ problem: { primitive, n, k }, form }: Layout): number {
  return primitive === "tp-columnwise" && form === "communication-only" ? k : n;
}

function shardedRows(form: Form, m: number, devices: number, chunks: number, rank: number): readonly RowPiece[] {
  const loops = form === "collective" ? chunks : 1;
  const count = m / (loops * devices);
  return Array.from({ length: loops }, (_, chunk) => ({ first: (chunk * devices + rank) * count, count }));
}

/** An element of the result, and the values that its error bound depends on. */
export interface Expected {
  readonly value: number;
  /** The summand of each device if the primitive adds over devices; otherwise only the value. */
  readonly partials: readonly number[];
  /** The root of the sum of squares of the added terms, and their number. */
  readonly size: number;
  readonly terms: number;
}

/** Element [row, column] of the result on a device, in double precision. */
export function expectedElement(
  { problem, form }: Layout,
  rank: number,
  row: number,
  column: number,
  matrices: Matrices,
): Expected {
  const { primitive, n, k, devices } = problem;
  const columnwise = primitive === "tp-columnwise";
  const alone = columnwise || form === "compute-only";
  const ranks = alone ? [rank] : Array.from({ length: devices }, (_, each) => each);
  if (form === "communication-only") {
    const keys = columnwise ? ["A"] : ranks.map((each) => `P${each}`);
    const partials = keys.map((key) => matrices.reader(key)(row * (columnwise ? k : n) + column));
    return { value: added(partials), partials, size: 0, terms: 0 };
  }
  let squares = 0;
  const partials = ranks.map((each) => {
    const a = matrices.reader(columnwise ? "A" : `A${each}`);
    const b = matrices.reader(`B${each}`);
    // The weight of tp-columnwise is [n, k]. B of the other primitives is [k, n].
    const [start, step] = columnwise ? [column * k, 1] : [column, n];
    let sum = 0;
    for (let i = 0; i < k; i++) {
      const product = a(row * k + i) * b(start + i * step);
      sum += product;
      squares += product * product;
    }
    return sum;
  });
  return { value: added(partials), partials, size: Math.sqrt(squares), terms: k * ranks.length };
}

function added(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

/** The row of the whole result at a position in a device's rows. */
export function rowAt(pieces: readonly RowPiece[], position: number): number {
  // All ranges of one device are equally long.
  const { count } = at(pieces, 0);
  return at(pieces, Math.floor(position / count)).first + (position % count);
}
