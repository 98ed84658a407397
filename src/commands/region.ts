/**
 * A Region is the exact set of bytes that a command reads or writes in one buffer: an offset and nested strided runs.
 * In canonical form no dim has count 1 or stride 0, contiguous dims are merged, strides descend, and no byte occurs
 * twice. Equal sets from the same nesting compare equal. An empty region has no dims and 0 bytes.
 */
import { dtypes } from "../numerics/dtype.ts";
import { dispatch, type RuleTable, at, invariant } from "../support/invariant.ts";
import type { BufferId, BufferRef } from "./buffer.ts";
import type { Command, PointToPoint, PointToPointGroup } from "./command.ts";
import { accumulates, type Operand } from "./kernel.ts";
import type { Program } from "./program.ts";
import type { View } from "./view.ts";

export interface RegionDim {
  readonly count: number;
  /** In bytes. */
  readonly stride: number;
}

export interface Region {
  readonly buffer: BufferId;
  /** In bytes from the start of the buffer. */
  readonly offset: number;
  readonly dims: readonly RegionDim[];
  /** The contiguous bytes at each point of `dims`: the innermost run. */
  readonly bytes: number;
}

/**
 * The canonical form of runs of `bytes` bytes at every point of `dims`. Strides are not negative. Dims may repeat
 * bytes as broadcast and window axes do: with stride 0, or a multiple of the next stride that does not pass its end.
 * No view of an allocated tensor repeats them in another way.
 */
export function canonicalRegion(buffer: BufferId, offset: number, dims: readonly RegionDim[], bytes: number): Region {
  const runs = nestedRuns(dims, bytes);
  invariant(runs !== null, "dims nest, so that no byte is named twice", dims);
  return { buffer, offset, ...runs };
}

/** Whether the dims of runs have a canonical form. */
export function nests(dims: readonly RegionDim[], bytes: number): boolean {
  return nestedRuns(dims, bytes) !== null;
}

function nestedRuns(dims: readonly RegionDim[], bytes: number): Pick<Region, "dims" | "bytes"> | null {
  const sorted = dims
    .filter(({ count, stride }) => count > 1 && stride > 0)
    .sort((a, b) => b.stride - a.stride || b.count - a.count);
  const nested: RegionDim[] = [];
  let run = bytes;
  // From the first byte to the last of all dims so far.
  let span = bytes;
  for (let i = sorted.length - 1; i >= 0; i--) {
    const { count, stride } = at(sorted, i);
    const inner = nested[0];
    const added = (count - 1) * stride;
    if (inner === undefined && stride <= run) {
      run += added;
    } else if (inner !== undefined && stride % inner.stride === 0 && stride / inner.stride <= inner.count) {
      nested[0] = { count: inner.count + added / inner.stride, stride: inner.stride };
    } else if (stride < span) {
      return null;
    } else {
      nested.unshift({ count, stride });
    }
    span += added;
  }
  return { dims: nested, bytes: run };
}

/** The number of bytes in the set. */
export function regionBytes({ dims, bytes }: Pick<Region, "dims" | "bytes">): number {
  let size = bytes;
  for (const { count } of dims) size *= count;
  return size;
}

/** The bytes of a view. */
export function regionOf({ buffer, offset, dtype, shape, strides }: View): Region {
  if (shape.includes(0)) return { buffer, offset, dims: [], bytes: 0 };
  const { bytes } = dtypes[dtype];
  const dims = shape.map((count, axis) => ({ count, stride: at(strides, axis) * bytes }));
  return canonicalRegion(buffer, offset, dims, bytes);
}

/** The operands of a kernel, bound at `refs`. */
export function boundViews(refs: readonly BufferRef[], operands: readonly Operand[]): readonly View[] {
  return refs.map(({ buffer, offset }, i) => {
    const { dtype, shape, strides } = at(operands, i);
    return { buffer, offset, dtype, shape, strides };
  });
}

// What each command reads and writes: one row per kind. The verifier, the schedule's rewrites and the traces take memory
// accesses only from here.

export interface Accesses<Access = Region> {
  readonly reads: readonly Access[];
  readonly writes: readonly Access[];
}

const none = { reads: [], writes: [] };

/** The tables that a command's operands refer to. */
export type OperandTables = Pick<Program, "kernels" | "buffers">;

const table: RuleTable<Command, Accesses<View>, [Program["kernels"]]> = {
  launch: ({ kernel, inputs, outputs }, kernels) => {
    const spec = at(kernels, kernel);
    const writes = boundViews(outputs, spec.outputs);
    const reads = boundViews(inputs, spec.inputs);
    return { reads: accumulates(spec) ? [...reads, ...writes] : reads, writes };
  },
  copy: ({ source, destination }) => ({ reads: [source], writes: [destination] }),
  transfer: ({ operation }) =>
    operation.kind === "collective"
      ? { reads: sideOf(operation.input), writes: sideOf(operation.output) }
      : { reads: opsOf(operation, "send"), writes: opsOf(operation, "recv") },
  recordEvent: () => none,
  waitEvent: () => none,
  signal: () => none,
  waitSignal: () => none,
  alloc: () => none,
  free: () => none,
};

function sideOf(view: View | null): readonly View[] {
  return view === null ? [] : [view];
}

function opsOf({ ops }: PointToPointGroup, wanted: PointToPoint["type"]): readonly View[] {
  return ops.flatMap(({ type, view }) => (type === wanted ? [view] : []));
}

/** The views that a command reads and writes. An alloc or a free has none. */
export function accessedViews(command: Command, kernels: Program["kernels"]): Accesses<View> {
  return dispatch<Command, Accesses<View>, [Program["kernels"]]>(table, command, kernels);
}

/** The regions that the command at `index` of `rank`'s list reads and writes, in own and peers' buffers. */
export function accesses(program: Program, rank: number, index: number): Accesses {
  return accessesOf(at(at(program.ranks, rank).commands, index), program);
}

/** The same for a command that is in no list. */
export function accessesOf(command: Command, { kernels, buffers }: OperandTables): Accesses {
  if (command.kind === "alloc" || command.kind === "free") {
    // They leave the whole buffer undefined.
    return { reads: [], writes: [canonicalRegion(command.buffer, 0, [], at(buffers, command.buffer).bytes)] };
  }
  const { reads, writes } = accessedViews(command, kernels);
  return { reads: reads.map(regionOf), writes: writes.map(regionOf) };
}
