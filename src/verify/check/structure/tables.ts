/** The tables of a Program: ranks with their streams, buffers in their arenas, kernels, and slots. */
import type { Arena, BufferRole, PlacedBuffer } from "../../../commands/buffer.ts";
import type { StreamInfo } from "../../../commands/command.ts";
import type { Program, RankProgram } from "../../../commands/program.ts";
import { elementCount } from "../../../commands/view.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { keysOf } from "../../../support/keys-of.ts";
import { arenaOf } from "../blocks.ts";
import { demand, demandCounts, isCount } from "./demand.ts";
import { checkKernel } from "./kernels.ts";

const roles: Readonly<Record<BufferRole, true>> = { input: true, output: true, temporary: true };
const arenas: Readonly<Record<Arena, true>> = { ...roles, symmetric: true };
const streamRoles: Readonly<Record<StreamInfo["role"], true>> = {
  caller: true,
  worker: true,
  communicator: true,
  pair: true,
  copy: true,
};

export function checkTables({ kind, ranks, buffers, kernels, transfers, slots }: Program): void {
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
  for (const [id, buffer] of buffers.entries()) checkBuffer(ranks, buffer, id);
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
export function checkApart({ buffers }: Program, allocated: Uint8Array): void {
  const positions = new Set<string>();
  const ends = new Map<string, PlacedBuffer>();
  const always = buffers.filter(({ id, bytes }) => allocated[id] !== 1 && bytes > 0);
  for (const buffer of always.toSorted((a, b) => a.offset - b.offset)) {
    const before = ends.get(arenaOf(buffer));
    const isApart = before === undefined || before.offset + before.bytes <= buffer.offset;
    demand(
      isApart,
      `buffers[${buffer.id}].offset`,
      buffer.offset,
      `bytes that buffer ${before?.id ?? 0} does not have`,
    );
    ends.set(arenaOf(buffer), buffer);
  }
  for (const { id, rank, role, position } of buffers) {
    if (position === null) continue;
    const key = `${rank} ${role} ${position}`;
    demand(!positions.has(key), `buffers[${id}].position`, position, `one ${role} of rank ${rank} at each position`);
    positions.add(key);
  }
}
