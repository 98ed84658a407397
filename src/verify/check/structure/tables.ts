/** The tables of a Program: ranks with their streams, buffers in their arenas, kernels, and slots. */
import type { Arena, BufferRole, PlacedBuffer } from "../../../commands/buffer.ts";
import type { StreamInfo } from "../../../commands/command.ts";
import { type Kernel, type Operand, withoutAddend } from "../../../commands/kernel.ts";
import type { Program, RankProgram } from "../../../commands/program.ts";
import { nests } from "../../../commands/region.ts";
import { sameNumbers } from "../../../commands/view.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at, keysOf } from "../../../support/invariant.ts";
import { arenaOf } from "../region-table.ts";
import { demand, demandCounts, isCount } from "./demand.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";

const roles: Readonly<Record<BufferRole, true>> = { input: true, output: true, temporary: true };
const arenas: Readonly<Record<Arena, true>> = { ...roles, symmetric: true };
const streamRoles: Readonly<Record<StreamInfo["role"], true>> = {
  caller: true,
  worker: true,
  communicator: true,
  pair: true,
  copy: true,
};

/** `isChecked`: false for ranks whose buffers equal those of another one. */
export function checkTables(
  { kind, ranks, buffers, kernels, transfers, slots }: Program,
  isChecked: (rank: number) => boolean = () => true,
): void {
  demand(kind === "Program", "kind", kind, '"Program"');
  for (const [name, table] of Object.entries({ ranks, buffers, kernels, transfers, slots })) {
    demand(Array.isArray(table), name, table, "a list");
  }
  for (const [id, { rank, streams, eventCount, arenaBytes }] of ranks.entries()) {
    const where = `ranks[${id}]`;
    demand(rank === id, `${where}.rank`, rank, String(id));
    demand(isCount(eventCount, 2 ** 24), `${where}.eventCount`, eventCount, "a count");
    demand(streams.length > 0, `${where}.streams`, streams, "at least the caller's stream");
    demandCounts(
      keysOf(arenas).map((arena) => arenaBytes[arena]),
      `${where}.arenaBytes`,
    );
    for (const [i, { id: stream, role, name }] of streams.entries()) {
      demand(isCount(stream, 2 ** 24), `${where}.streams[${i}].id`, stream, "a stream's number");
      demand(
        Object.hasOwn(streamRoles, role) && typeof name === "string",
        `${where}.streams[${i}]`,
        role,
        "a role and a name",
      );
    }
    demand(
      new Set(streams.map((stream) => stream.id)).size === streams.length,
      `${where}.streams`,
      streams.map((stream) => stream.id),
      "separate numbers",
    );
  }
  for (const [id, buffer] of buffers.entries()) {
    if (buffer.id !== id || isChecked(buffer.rank)) checkBuffer(ranks, buffer, id);
  }
  for (const [id, kernel] of kernels.entries()) checkKernel(kernel, `kernels[${id}]`);
  for (const [i, { id, signaller, waiter }] of slots.entries()) {
    // There are as many as pairs of ranks: a text only for what is wrong.
    if (id !== i) demand(false, `slots[${i}].id`, id, String(i));
    if (!isCount(signaller, ranks.length)) demand(false, `slots[${i}]`, signaller, "a rank");
    if (!isCount(waiter, ranks.length)) demand(false, `slots[${i}]`, waiter, "a rank");
  }
}

function checkBuffer(ranks: readonly RankProgram[], buffer: PlacedBuffer, position: number): void {
  const where = `buffers[${position}]`;
  const { id, rank, role, arena, bytes, dtype, shape, name, offset } = buffer;
  demand(id === position, `${where}.id`, id, String(position));
  demand(isCount(rank, ranks.length), `${where}.rank`, rank, "a rank");
  demand(Object.hasOwn(roles, role), `${where}.role`, role, "input, output or temporary");
  demand(
    Object.hasOwn(arenas, arena) && (arena === "symmetric" || arena === role),
    `${where}.arena`,
    arena,
    `${role} or symmetric`,
  );
  demand(Object.hasOwn(dtypes, dtype), `${where}.dtype`, dtype, "a dtype");
  demandCounts(shape, `${where}.shape`);
  demand(typeof name === "string", `${where}.name`, name, "a name");
  demand(
    bytes === elementCount(shape) * dtypes[dtype].bytes,
    `${where}.bytes`,
    bytes,
    "as many bytes as its shape has",
  );
  const isPosition = role === "temporary" ? buffer.position === null : isCount(buffer.position);
  demand(isPosition, `${where}.position`, buffer.position, "a position for inputs and outputs, else null");
  const isOutput = buffer.output === undefined || (role === "input" && isCount(buffer.output));
  demand(isOutput, `${where}.output`, buffer.output, "the position of the output that an input becomes");
  const size = at(ranks, rank).arenaBytes[arena];
  demand(
    isCount(offset) && offset % dtypes[dtype].bytes === 0,
    `${where}.offset`,
    offset,
    "a multiple of the dtype's size",
  );
  demand(offset + bytes <= size, `${where}.offset`, offset, `an end of at most ${size} bytes, the size of the arena`);
}

/** Buffers that are not `allocated` are alive all the time. The sweep checks the others. */
export function checkApart(buffers: readonly PlacedBuffer[], allocated: Uint8Array): void {
  const positions = new Set<string>();
  const ends = new Map<string, PlacedBuffer>();
  const always = buffers.filter(({ id, bytes }) => allocated[id] !== 1 && bytes > 0);
  for (const buffer of always.toSorted((a, b) => a.offset - b.offset)) {
    const arena = arenaOf(buffer);
    const before = ends.get(arena);
    const isApart = before === undefined || before.offset + before.bytes <= buffer.offset;
    demand(
      isApart,
      `buffers[${buffer.id}].offset`,
      buffer.offset,
      `bytes that buffer ${before?.id ?? 0} does not have`,
    );
    ends.set(arena, buffer);
  }
  for (const { id, rank, role, position } of buffers) {
    if (position === null) continue;
    const key = `${rank} ${role} ${position}`;
    demand(!positions.has(key), `buffers[${id}].position`, position, `one ${role} of rank ${rank} at each position`);
    positions.add(key);
  }
}

// Kernels have the operands of their kind, and operands are boxes of elements.

/** How many inputs and outputs, at least and at most; whether all have one shape. */
const kernelForms: { readonly [K in Kernel["kind"]]: readonly [number, number, number, number, boolean] } = {
  unary: [1, 1, 1, 1, true],
  cast: [1, 1, 1, 1, true],
  binary: [1, 2, 1, 1, true],
  reduction: [1, 1, 1, 1, false],
  matmul: [2, 2, 1, 1, false],
  linear: [2, 3, 1, 1, false],
  combine: [1, Infinity, 1, Infinity, true],
  fill: [0, 0, 1, 1, true],
  iota: [0, 0, 1, 1, true],
  sdpa: [3, 4, 2, 2, false],
  sdpaBackward: [6, 7, 3, 3, false],
  unit: [0, Infinity, 0, Infinity, false],
  opaque: [0, Infinity, 0, Infinity, false],
};

function checkKernel(kernel: Kernel, where: string): void {
  const { kind, inputs, outputs } = kernel;
  demand(Object.hasOwn(kernelForms, kind), `${where}.kind`, kind, "a kernel's kind");
  const [fewest, mostIn, fewestOut, mostOut, sameShapes] = kernelForms[kind];
  const product = withoutAddend(kernel);
  const operandCount = product === null ? inputs.length : inputs.length - 1;
  demand(
    operandCount >= fewest && operandCount <= mostIn,
    `${where}.inputs`,
    operandCount,
    `from ${fewest} to ${mostIn}`,
  );
  demand(
    outputs.length >= fewestOut && outputs.length <= mostOut,
    `${where}.outputs`,
    outputs.length,
    `from ${fewestOut} to ${mostOut}`,
  );
  if (product !== null) {
    demand(product.product.accumulate !== true, `${where}.accumulate`, true, "an addend or the output, not both");
    const output = at(outputs, 0);
    demand(
      sameNumbers(product.addend.shape, output.shape) && product.addend.dtype === output.dtype,
      `${where}.inputs`,
      product.addend.shape,
      `an addend of shape [${output.shape.join(", ")}], of the result's dtype`,
    );
  }
  if (kind === "binary") {
    const tensors = kernel.scalar === undefined ? 2 : 1;
    demand(
      inputs.length === tensors,
      `${where}.inputs`,
      inputs.length,
      `${tensors}, and the number if the kernel has one`,
    );
  }
  const operands = [...inputs, ...outputs];
  for (const operand of operands) checkBox(operand, where);
  if (!sameShapes) return;
  const [first, ...rest] = operands;
  const other = rest.find(({ shape }) => !sameNumbers(shape, first?.shape ?? []));
  demand(other === undefined, where, other?.shape, `operands of shape [${first?.shape.join(", ") ?? ""}]`);
}

export function checkBox({ dtype, shape, strides }: Operand, where: string): void {
  demand(Object.hasOwn(dtypes, dtype), `${where}: dtype`, dtype, "a dtype");
  demandCounts(shape, `${where}: shape`);
  demandCounts(strides, `${where}: strides`);
  demand(shape.length === strides.length, `${where}: strides`, strides, "one stride per axis");
  const bytes: number = dtypes[dtype].bytes;
  const dims = shape.map((count, axis) => ({ count, stride: at(strides, axis) * bytes }));
  const span = dims.reduce((sum, { count, stride }) => sum + Math.max(0, count - 1) * stride, bytes);
  demand(isCount(elementCount(shape)) && isCount(span), `${where}: shape`, shape, "a box of less than 2^45 bytes");
  demand(nests(dims, bytes), `${where}: strides`, strides, "axes that do not interleave");
}
