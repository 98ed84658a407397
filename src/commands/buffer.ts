/**
 * Buffers. In a CommandList a BufferId counts the buffers of one rank. Link numbers them over all ranks and gives
 * each a place: rank, arena and offset.
 */
import type { DType } from "../numerics/dtype.ts";
import type { Id } from "../support/invariant.ts";

export type BufferId = Id<"Buffer">;

/** input, output: bound by the caller. temporary: undefined at the start of each run. */
export type BufferRole = "input" | "output" | "temporary";
/**
 * Buffers that peers access are in the symmetric arena, whatever their role, so that a back end maps one arena per
 * rank.
 */
export type Arena = BufferRole | "symmetric";

export interface Buffer {
  readonly id: BufferId;
  readonly role: BufferRole;
  readonly arena: Arena;
  readonly bytes: number;
  readonly dtype: DType;
  /** Local shape at allocation, row-major. */
  readonly shape: readonly number[];
  /** The tensor that it holds: `T3`. */
  readonly name: string;
  /** For inputs and outputs: the position in the program's list of inputs or outputs. */
  readonly position: number | null;
  /** Of an input that the run writes: the position of the output that it is afterwards. */
  readonly output?: number;
}

/** The position among the inputs or outputs of the program; null if the buffer is not among them. */
export function positionIn(
  { role, position, output }: Pick<Buffer, "role" | "position" | "output">,
  side: "input" | "output",
): number | null {
  if (role === side) return position;
  return side === "output" ? (output ?? null) : null;
}

/** A buffer of a linked Program. */
export interface PlacedBuffer extends Buffer {
  readonly rank: number;
  /** In bytes, from the start of the rank's arena. */
  readonly offset: number;
}

/** An address in a buffer. */
export interface BufferRef {
  readonly buffer: BufferId;
  /** In bytes. */
  readonly offset: number;
}
