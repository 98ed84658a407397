/**
 * Whether a value of type Program has the structure that the proof relies on: ids in range, operands that fit their
 * kernels, buffers within their arenas, peers' buffers in symmetric memory, and transfers whose halves fit. Programs of
 * `link` and of rewrites have it; a Program made or changed by hand may not.
 */
import type { Arena, BufferRole, PlacedBuffer } from "../../commands/buffer.ts";
import { collectiveTypes } from "../../commands/collectives.ts";
import type { Command, StreamInfo } from "../../commands/command.ts";
import type { Kernel, Operand } from "../../commands/kernel.ts";
import { disagreement, unfitViews } from "../../commands/link/match/check-collective.ts";
import { viewMismatch } from "../../commands/link/match/point-to-point-problems.ts";
import type { LinkedTransfer, Program, RankProgram } from "../../commands/program.ts";
import { nests } from "../../commands/region.ts";
import type { Collective, PointToPointGroup } from "../../commands/transfer.ts";
import { elementCount, sameNumbers, sameView, type View } from "../../commands/view.ts";
import { type Diagnostic, DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { dispatch, type RuleTable } from "../../support/dispatch.ts";
import { at, InvariantError } from "../../support/invariant.ts";
import { keysOf } from "../../support/keys-of.ts";
import { arenaOf } from "./blocks.ts";

/** The first fault: `program-malformed`, or `transfer-mismatch` between the halves of a transfer. Null if there is none. */
export function structureProblem(program: Program): Diagnostic | null {
  try {
    checkTables(program);
    for (const rank of program.ranks) checkRank(program, rank);
    for (const [id, transfer] of program.transfers.entries()) checkTransfer(program, transfer, id);
    return null;
  } catch (error) {
    if (error instanceof DiagnosticError) return at(error.diagnostics, 0);
    // A value of another type than Program declares may fail anywhere that it is read.
    if (error instanceof TypeError || error instanceof RangeError || error instanceof InvariantError) {
      return invalid("a field", "a value of another type, or none", "a value of type Program");
    }
    throw error;
  }
}

function invalid(where: string, found: string, expected: string): Diagnostic {
  return {
    code: "program-malformed",
    message: `${where} is not as a Program needs it`,
    place: { kind: "call", text: `verify(program): ${where}` },
    found,
    expected,
    help: "take Programs from compile, link and rewrites, or correct this field",
  };
}

function demand(condition: boolean, where: string, found: unknown, expected: string): asserts condition {
  if (condition) return;
  throw new DiagnosticError([invalid(where, JSON.stringify(found) ?? String(found), expected)]);
}

/** Larger numbers are no count of anything, and their products not exact. */
const most = 2 ** 45;

function isCount(value: unknown, limit = most): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) < limit;
}

function demandCounts(values: readonly number[], where: string): void {
  demand(
    Array.isArray(values) && values.every((value) => isCount(value)),
    where,
    values,
    "whole numbers of at least 0",
  );
}

const roles: Readonly<Record<BufferRole, true>> = { input: true, output: true, temporary: true };
const arenas: Readonly<Record<Arena, true>> = { ...roles, symmetric: true };
const streamRoles: Readonly<Record<StreamInfo["role"], true>> = {
  caller: true,
  worker: true,
  communicator: true,
  copy: true,
};

function checkTables({ kind, ranks, buffers, kernels, transfers, slots }: Program): void {
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
  demandApart(ranks, buffers);
  for (const [id, kernel] of kernels.entries()) checkKernel(kernel, `kernels[${id}]`);
  for (const [i, { id, signaller, waiter }] of slots.entries()) {
    demand(id === i, `slots[${i}].id`, id, String(i));
    for (const rank of [signaller, waiter]) demand(isCount(rank, ranks.length), `slots[${i}]`, rank, "a rank");
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

/** Buffers that no list allocates are alive all the time. The sweep checks the others. */
function demandApart(ranks: readonly RankProgram[], buffers: readonly PlacedBuffer[]): void {
  const allocated = new Set(
    ranks.flatMap(({ commands }) => commands.flatMap((command) => (command.kind === "alloc" ? [command.buffer] : []))),
  );
  const positions = new Set<string>();
  const ends = new Map<string, PlacedBuffer>();
  const always = buffers.filter(({ id, bytes }) => !allocated.has(id) && bytes > 0);
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

/** How many inputs and outputs, at least and at most; whether all have one shape. */
const kernelForms: { readonly [K in Kernel["kind"]]: readonly [number, number, number, number, boolean] } = {
  unary: [1, 1, 1, 1, true],
  cast: [1, 1, 1, 1, true],
  binary: [2, 2, 1, 1, true],
  reduction: [1, 1, 1, 1, false],
  matmul: [2, 2, 1, 1, false],
  linear: [2, 3, 1, 1, false],
  combine: [1, Infinity, 1, Infinity, true],
  fill: [0, 0, 1, 1, true],
  unit: [0, Infinity, 0, Infinity, false],
  opaque: [0, Infinity, 0, Infinity, false],
};

function checkKernel(kernel: Kernel, where: string): void {
  const { kind, inputs, outputs } = kernel;
  demand(Object.hasOwn(kernelForms, kind), `${where}.kind`, kind, "a kernel's kind");
  const [fewest, mostIn, fewestOut, mostOut, sameShapes] = kernelForms[kind];
  demand(
    inputs.length >= fewest && inputs.length <= mostIn,
    `${where}.inputs`,
    inputs.length,
    `from ${fewest} to ${mostIn}`,
  );
  demand(
    outputs.length >= fewestOut && outputs.length <= mostOut,
    `${where}.outputs`,
    outputs.length,
    `from ${fewestOut} to ${mostOut}`,
  );
  const operands = [...inputs, ...outputs];
  for (const operand of operands) checkBox(operand, where);
  if (!sameShapes) return;
  const [first, ...rest] = operands;
  const other = rest.find(({ shape }) => !sameNumbers(shape, first?.shape ?? []));
  demand(other === undefined, where, other?.shape, `operands of shape [${first?.shape.join(", ") ?? ""}]`);
}

function checkBox({ dtype, shape, strides }: Operand, where: string): void {
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

/** One rank's commands. */
interface Setting {
  readonly program: Program;
  readonly own: RankProgram;
  readonly where: string;
}

function checkRank(program: Program, own: RankProgram): void {
  const { rank, streams, commands, origins, transferOf } = own;
  const ids = new Set<number>(streams.map(({ id }) => id));
  const at0 = `ranks[${rank}]`;
  demand(origins.length === commands.length, `${at0}.origins`, origins.length, `${commands.length}, one per command`);
  demand(
    transferOf.length === commands.length,
    `${at0}.transferOf`,
    transferOf.length,
    `${commands.length}, one per command`,
  );
  for (const [index, command] of commands.entries()) {
    const where = `${at0}.commands[${index}]`;
    const { statement, path, iteration } = at(origins, index);
    demand(
      typeof statement === "string" && Array.isArray(path) && Array.isArray(iteration),
      `${at0}.origins[${index}]`,
      statement,
      "a statement, a path and an iteration",
    );
    demand(Object.hasOwn(commandRules, command.kind), `${where}.kind`, command.kind, "a command's kind");
    demand(ids.has(command.stream), `${where}.stream`, command.stream, "a stream of the rank");
    const id = transferOf[index] ?? null;
    demand(
      (id === null) === (command.kind !== "transfer"),
      `${at0}.transferOf[${index}]`,
      id,
      "a transfer's number for transfers only",
    );
    dispatch<Command, void, [Setting]>(commandRules, command, { program, own, where });
    if (id === null) continue;
    const transfer = program.transfers[id];
    const takesPart = transfer?.participants.some((each) => each.rank === rank && each.command === index) ?? false;
    demand(takesPart, `${at0}.transferOf[${index}]`, id, "a transfer in which the command takes part");
  }
}

const commandRules: RuleTable<Command, void, [Setting]> = {
  launch: ({ kernel, inputs, outputs, smMargin = 0 }, setting) => {
    const { program, where } = setting;
    demand(isCount(kernel, program.kernels.length), `${where}.kernel`, kernel, "a kernel's number");
    demand(isCount(smMargin), `${where}.smMargin`, smMargin, "a count");
    const spec = at(program.kernels, kernel);
    for (const [side, refs] of Object.entries({ inputs, outputs })) {
      const operands = side === "inputs" ? spec.inputs : spec.outputs;
      demand(refs.length === operands.length, `${where}.${side}`, refs.length, `${operands.length}, as in the kernel`);
      for (const [i, ref] of refs.entries())
        checkView({ ...at(operands, i), ...ref }, setting, `${where}.${side}[${i}]`, true);
    }
  },
  copy: ({ source, destination, engine = "copy" }, setting) => {
    const { where } = setting;
    checkView(source, setting, `${where}.source`, true);
    checkView(destination, setting, `${where}.destination`, true);
    demand(
      source.dtype === destination.dtype,
      `${where}.destination`,
      destination.dtype,
      `${source.dtype}, as in the source`,
    );
    demand(
      sameNumbers(source.shape, destination.shape),
      `${where}.destination`,
      destination.shape,
      `shape [${source.shape.join(", ")}], as in the source`,
    );
    demand(["copy", "kernel"].includes(engine), `${where}.engine`, engine, "copy or kernel");
  },
  transfer: ({ operation, communicator }, setting) => {
    const { where, program } = setting;
    demand(typeof communicator === "string", `${where}.communicator`, communicator, "a name");
    if (operation.kind === "collective") {
      demand(collectiveTypes.includes(operation.type), `${where}.type`, operation.type, "a collective's type");
      demandCounts(operation.team, `${where}.team`);
      for (const view of [operation.input, operation.output]) if (view !== null) checkView(view, setting, where, false);
    } else {
      demand(operation.kind === "group", `${where}.operation`, operation, "a collective or a group");
      for (const { type, peer, view } of operation.ops) {
        demand(["send", "recv"].includes(type), `${where}.ops`, type, "send or recv");
        demand(isCount(peer, program.ranks.length), `${where}.ops`, peer, "a rank");
        checkView(view, setting, where, false);
      }
    }
  },
  recordEvent: ({ event }, setting) => checkEvent(event, setting),
  waitEvent: ({ event }, setting) => checkEvent(event, setting),
  signal: ({ slot }, setting) => checkSlot(slot, "signaller", setting),
  waitSignal: ({ slot }, setting) => checkSlot(slot, "waiter", setting),
  alloc: ({ buffer }, setting) => checkLife(buffer, setting),
  free: ({ buffer }, setting) => checkLife(buffer, setting),
};

function checkEvent(event: number, { own, where }: Setting): void {
  demand(isCount(event, own.eventCount), `${where}.event`, event, `less than ${own.eventCount}, the rank's count`);
}

function checkSlot(slot: number, side: "signaller" | "waiter", { program, own, where }: Setting): void {
  demand(isCount(slot, program.slots.length), `${where}.slot`, slot, "a slot's number");
  const owner = at(program.slots, slot)[side];
  demand(owner === own.rank, `${where}.slot`, slot, `a slot of rank ${own.rank}; its ${side} is rank ${owner}`);
}

function checkLife(buffer: number, { program, own, where }: Setting): void {
  const found = isCount(buffer) ? program.buffers[buffer] : undefined;
  demand(
    found?.rank === own.rank && found.role === "temporary",
    `${where}.buffer`,
    buffer,
    `a temporary of rank ${own.rank}`,
  );
}

/** Whether the view reaches outside its buffer is a finding of its own, unless it is absurdly far outside. */
function checkView(view: View, { program, own }: Setting, where: string, mayBePeers: boolean): void {
  demand(isCount(view.buffer, program.buffers.length), `${where}.buffer`, view.buffer, "a buffer's number");
  checkBox(view, where);
  const { rank, arena } = at(program.buffers, view.buffer);
  const isReached = rank === own.rank || (mayBePeers && arena === "symmetric");
  demand(
    isReached,
    `${where}.buffer`,
    view.buffer,
    `a buffer of rank ${own.rank}${mayBePeers ? ", or a peer's in symmetric memory" : ""}`,
  );
  const isAligned = Number.isSafeInteger(view.offset) && view.offset % dtypes[view.dtype].bytes === 0;
  demand(isAligned && Math.abs(view.offset) < most, `${where}.offset`, view.offset, "a multiple of the dtype's size");
}

function checkTransfer(program: Program, transfer: LinkedTransfer, id: number): void {
  const { ranks } = program;
  const where = `transfers[${id}]`;
  demand(transfer.id === id, `${where}.id`, transfer.id, String(id));
  demand(transfer.participants.length > 0, `${where}.participants`, 0, "at least one");
  const uses = transfer.participants.map(({ rank, command, operation }, i) => {
    const place = `${where}.participants[${i}]`;
    const own = isCount(rank) ? ranks[rank] : undefined;
    const posted = isCount(command) ? own?.commands[command] : undefined;
    demand(posted?.kind === "transfer", place, { rank, command }, "a transfer command");
    demand(own?.transferOf[command] === id, place, { rank, command }, `a command of transfer ${id}`);
    demand(
      posted.communicator === transfer.communicator,
      `${where}.communicator`,
      transfer.communicator,
      posted.communicator,
    );
    demand(sameOperation(operation, posted.operation), `${place}.operation`, operation, "the operation of its command");
    return { rank, command, operation };
  });
  demand(
    new Set(uses.map(({ rank, command }) => `${rank} ${command}`)).size === uses.length,
    `${where}.participants`,
    uses.length,
    "separate commands",
  );
  if (transfer.kind === "group") return checkEdges(program, transfer, where);
  demand(transfer.kind === "collective", `${where}.kind`, transfer, "collective or group");
  const collective = uses.flatMap(({ rank, command, operation }) =>
    operation.kind === "collective" ? [{ rank, command, operation }] : [],
  );
  const first = collective[0];
  demand(
    first !== undefined && collective.length === uses.length,
    `${where}.participants`,
    uses.length,
    "collectives only",
  );
  const { team } = first.operation;
  demand(
    sameNumbers(
      team,
      uses.map(({ rank }) => rank),
    ),
    `${where}.participants`,
    uses.map(({ rank }) => rank),
    `ranks ${team.join(", ")}, the team`,
  );
  for (const use of collective) refuse(disagreement(ranks, first, use));
  refuse(unfitViews(ranks, collective));
}

function checkEdges(program: Program, transfer: Extract<LinkedTransfer, { kind: "group" }>, where: string): void {
  const { participants, edges } = transfer;
  const used = new Set<string>();
  const opOf = (participant: number, op: number, type: "send" | "recv") => {
    const posted = participants[participant];
    const found = posted?.operation.kind === "group" ? posted.operation.ops[op] : undefined;
    demand(
      posted !== undefined && found?.type === type,
      `${where}.edges`,
      { participant, op },
      `a ${type} of a participant`,
    );
    demand(!used.has(`${participant} ${op}`), `${where}.edges`, { participant, op }, "one edge per send and recv");
    used.add(`${participant} ${op}`);
    return { ...found, rank: posted.rank, command: posted.command };
  };
  for (const { from, sendOp, to, recvOp } of edges) {
    const [send, recv] = [opOf(from, sendOp, "send"), opOf(to, recvOp, "recv")];
    demand(
      send.peer === recv.rank && recv.peer === send.rank,
      `${where}.edges`,
      [send.peer, recv.peer],
      "peers that name each other",
    );
    refuse(viewMismatch(program.ranks, send, recv));
  }
  const count = participants.reduce(
    (sum, { operation }) => sum + (operation.kind === "group" ? operation.ops.length : NaN),
    0,
  );
  demand(used.size === count, `${where}.edges`, used.size, `${count}, one end for each send and recv`);
}

function refuse(problem: Diagnostic | null): void {
  if (problem !== null) throw new DiagnosticError([problem]);
}

function sameOperation(a: Collective | PointToPointGroup, b: Collective | PointToPointGroup): boolean {
  if (a === b) return true;
  if (a.kind === "collective" && b.kind === "collective") {
    const sameSide = (x: View | null, y: View | null): boolean => (x === null || y === null ? x === y : sameView(x, y));
    const same = a.type === b.type && sameNumbers(a.team, b.team) && a.root === b.root && a.reduceOp === b.reduceOp;
    return same && sameSide(a.input, b.input) && sameSide(a.output, b.output);
  }
  if (a.kind !== "group" || b.kind !== "group" || a.ops.length !== b.ops.length) return false;
  return a.ops.every(({ type, peer, view }, i) => {
    const other = at(b.ops, i);
    return type === other.type && peer === other.peer && sameView(view, other.view);
  });
}
