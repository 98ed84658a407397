/**
 * The bytes that each rank receives from others in a linked Program, counted from its commands. A collective counts as
 * the least that a rank receives in a ring; copies and kernels count what they read of, or write to, another rank's
 * memory.
 */
import type { DType, Program } from "@braid-compiler/braid";
import type { Collective, Command } from "../../src/commands/command.ts";
import { dtypes } from "../../src/numerics/dtype.ts";
import { at, unreachable } from "../../src/support/invariant.ts";

/** Of the rank that receives most. */
export function mostReceived(program: Program): number {
  return Math.max(...receivedBytes(program));
}

function receivedBytes(program: Program): readonly number[] {
  const bytes = program.ranks.map(() => 0);
  const add = (rank: number, count: number): void => {
    bytes[rank] = at(bytes, rank) + count;
  };
  for (const { rank, commands } of program.ranks) for (const command of commands) count(command, rank, program, add);
  return bytes;
}

function count(command: Command, rank: number, program: Program, add: (rank: number, bytes: number) => void): void {
  const ownerOf = (buffer: number): number => at(program.buffers, buffer).rank;
  switch (command.kind) {
    case "transfer": {
      const { operation } = command;
      if (operation.kind === "collective") add(rank, collectiveBytes(operation, rank));
      else {
        for (const { type, peer, view } of operation.ops)
          if (type === "recv" && peer !== rank) add(rank, bytesOf(view));
      }
      return;
    }
    case "copy": {
      const to = ownerOf(command.destination.buffer);
      if (ownerOf(command.source.buffer) !== to) add(to, bytesOf(command.destination));
      return;
    }
    case "launch": {
      const kernel = at(program.kernels, command.kernel);
      for (const [i, { buffer }] of command.inputs.entries()) {
        if (ownerOf(buffer) !== rank) add(rank, distinctBytes(at(kernel.inputs, i)));
      }
      for (const [i, { buffer }] of command.outputs.entries()) {
        if (ownerOf(buffer) !== rank) add(ownerOf(buffer), distinctBytes(at(kernel.outputs, i)));
      }
      return;
    }
    case "recordEvent":
    case "waitEvent":
    case "signal":
    case "waitSignal":
    case "alloc":
    case "free":
      return;
    default:
      unreachable(command);
  }
}

/** Axis 0 of a split side has one slice for each rank that has data: a root from outside the mesh has none. */
function collectiveBytes({ type, team, root, input, output }: Collective, rank: number): number {
  if (output === null) return 0;
  const isRoot = root !== null && team[root] === rank;
  const bytes = bytesOf(output);
  const slices = output.shape[0] ?? 1;
  const n = team.length;
  switch (type) {
    case "Allgather":
    case "AllToAll":
    case "Gather":
      return slices === 0 ? 0 : (bytes * (slices - (input === null ? 0 : 1))) / slices;
    case "ReduceScatter":
      return bytes * (n - 1);
    case "Allreduce":
      return (2 * bytes * (n - 1)) / n;
    case "Reduce":
      return n === 1 ? 0 : bytes;
    case "Broadcast":
    case "Scatter":
      return isRoot ? 0 : bytes;
    default:
      return unreachable(type);
  }
}

interface Box {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
}

function bytesOf({ dtype, shape }: Pick<Box, "dtype" | "shape">): number {
  return shape.reduce((product, extent) => product * extent, dtypes[dtype].bytes);
}

/** A kernel reads an element that a stride of 0 repeats once. */
function distinctBytes({ dtype, shape, strides }: Box): number {
  return bytesOf({ dtype, shape: shape.filter((_, axis) => strides[axis] !== 0) });
}
