/**
 * Buffers and bindings of one rank. A binding maps a tensor to a View of a buffer. Inputs and outputs of the program
 * are bound from the start; other tensors by an allocation, by the op that makes them, or as a view of another tensor.
 *
 * Owners keep a temporary alive: the tensor that it was allocated for, and tensors that an op (Set, Slice, ...) bound
 * to a view of it. The slice of a HirAliasSelect ends with its source; with PyTorch's allocator it is another owner.
 *
 * Braid frees memory on the current stream. PyTorch's caching allocator returns it to the stream that allocated it, on
 * which the next allocation may take it, without a wait for other streams that use it (no host program calls
 * record_stream). The workspace of a kernel is such an allocation, too, so the free counts at once. What lives at the end
 * of a run is freed on the caller's stream.
 */
import { elementCount } from "../numerics/tensor/host-tensor.ts";
import type { Arena, Buffer, BufferId, BufferRole } from "../commands/buffer.ts";
import type { CommandStreamId } from "../commands/command.ts";
import type { View } from "../commands/view.ts";
import type { Statement } from "../host/nodes.ts";
import type { TensorId } from "../ir/domain.ts";
import { type DType, dtypes } from "../numerics/dtype.ts";
import { makeId, at } from "../support/invariant.ts";
import type { LocalLayout } from "./local-layout.ts";
import { emit, type Tape } from "./tape.ts";

export type Allocator = "pytorch" | "braid";

interface BufferState {
  readonly buffer: Omit<Buffer, "arena">;
  /** Whether peers access it. */
  symmetric: boolean;
  owners: number;
  /** The stream that allocated it; null for inputs and outputs. */
  readonly stream: CommandStreamId | null;
  /** The tensor whose Deallocate freed it; null while it lives. */
  freedBy: TensorId | null;
}

export interface TensorBinding {
  readonly view: View;
  /** The memory that the tensor has, of which `view` may be a part; absent if `view` is all of it. */
  readonly room?: View;
  readonly owns: boolean;
  /** The statement that bound the tensor to a view of another tensor; null if the tensor has separate memory. */
  readonly aliasedBy: Statement | null;
}

export interface RankMemory {
  readonly tape: Tape;
  readonly allocator: Allocator;
  readonly buffers: BufferState[];
  readonly bindings: Map<TensorId, TensorBinding>;
}

export function createRankMemory(tape: Tape, allocator: Allocator): RankMemory {
  return { tape, allocator, buffers: [], bindings: new Map() };
}

/** Whether slices own their memory. */
export function slicesOwn({ allocator }: RankMemory): boolean {
  return allocator === "pytorch";
}

/** The properties of a new buffer. */
export interface BufferRequest {
  /** `T3`. */
  readonly name: string;
  readonly dtype: DType;
  readonly symmetric: boolean;
  readonly layout: LocalLayout;
}

/**
 * Adds a buffer and returns a view of all of it. `position` is the index of an input or output, and `output` that of
 * the output that an input becomes.
 */
export function addBuffer(
  { buffers }: RankMemory,
  { name, dtype, symmetric, layout }: BufferRequest,
  role: BufferRole,
  position: number | null,
  { stream, output }: { readonly stream?: CommandStreamId; readonly output?: number } = {},
): View {
  const { shape, strides } = layout;
  const id = makeId<BufferId>(buffers.length);
  const bytes = elementCount(shape) * dtypes[dtype].bytes;
  buffers.push({
    buffer: { id, role, bytes, dtype, shape, name, position, ...(output === undefined ? {} : { output }) },
    symmetric,
    owners: 0,
    stream: stream ?? null,
    freedBy: null,
  });
  return { buffer: id, offset: 0, dtype, shape, strides };
}

/** Adds a temporary with undefined contents and returns a view of it. */
export function addTemporary(memory: RankMemory, request: BufferRequest, stream: CommandStreamId): View {
  const view = addBuffer(memory, request, "temporary", null, { stream });
  emit(memory.tape, { kind: "alloc", stream, buffer: view.buffer });
  return view;
}

/** Binds the tensor. Its previous memory loses an owner. */
export function bind(memory: RankMemory, tensor: TensorId, binding: TensorBinding, stream: CommandStreamId): void {
  if (binding.owns) stateOf(memory, binding.view).owners++;
  unbind(memory, tensor, stream);
  memory.bindings.set(tensor, binding);
}

/** Removes the tensor's binding, and frees a temporary without other owners. */
export function unbind(memory: RankMemory, tensor: TensorId, stream: CommandStreamId): void {
  const binding = memory.bindings.get(tensor);
  if (binding === undefined) return;
  memory.bindings.delete(tensor);
  if (!binding.owns) return;
  release(memory, stateOf(memory, binding.view), tensor, stream);
}

/** The buffer loses an owner; without any it is free. `tensor` is the one whose binding went last. */
function release(memory: RankMemory, state: BufferState, tensor: TensorId, current: CommandStreamId): void {
  const stream = memory.allocator === "pytorch" ? (state.stream ?? current) : current;
  releaseOn(memory, state, tensor, stream);
}

function releaseOn({ tape }: RankMemory, state: BufferState, tensor: TensorId, stream: CommandStreamId): void {
  state.owners--;
  if (state.owners > 0 || state.buffer.role !== "temporary") return;
  state.freedBy = tensor;
  emit(tape, { kind: "free", stream, buffer: state.buffer.id });
}

/** Drops all tensors at the end of a run, as nvFuser does. */
export function dropAll(memory: RankMemory, caller: CommandStreamId): void {
  for (const [tensor, { owns, view }] of memory.bindings) {
    if (owns) releaseOn(memory, stateOf(memory, view), tensor, caller);
  }
  memory.bindings.clear();
}

/** Frees what the tensor has on the stream that allocated it, as PyTorch does when a tensor's last owner goes. */
export function dropMemory(memory: RankMemory, tensor: TensorId, current: CommandStreamId): void {
  const binding = memory.bindings.get(tensor);
  if (binding !== undefined) unbind(memory, tensor, stateOf(memory, binding.view).stream ?? current);
}

/** Tensors whose memory a library keeps until the Wait for its transfer, also if they are deallocated before. */
export type Held = readonly (readonly [tensor: TensorId, view: View])[];

/** Adds an owner to the temporaries among the tensors. */
export function hold(memory: RankMemory, tensors: readonly TensorId[]): Held {
  const held = tensors.flatMap((tensor): Held => {
    const view = memory.bindings.get(tensor)?.view;
    return view === undefined || stateOf(memory, view).buffer.role !== "temporary" ? [] : [[tensor, view]];
  });
  for (const [, view] of held) stateOf(memory, view).owners++;
  return held;
}

export function letGo(memory: RankMemory, held: Held, stream: CommandStreamId): void {
  for (const [tensor, view] of held) release(memory, stateOf(memory, view), tensor, stream);
}

export function stateOf(memory: RankMemory, view: View): BufferState {
  return at(memory.buffers, view.buffer);
}

/** The buffers in the form of a command list. */
export function finishedBuffers({ buffers }: RankMemory): readonly Buffer[] {
  return buffers.map(({ buffer, symmetric }) => {
    const arena: Arena = symmetric ? "symmetric" : buffer.role;
    return { ...buffer, arena };
  });
}
