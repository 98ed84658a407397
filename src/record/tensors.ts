/** A rank's tensors: their local layouts, and the memory that they are bound to. */
import { sameNumbers, type View } from "../commands/view.ts";
import { isDID, type Tensor, type TensorId, withoutReductions } from "../ir/domain.ts";
import { printTensor } from "../ir/print-tensor.ts";
import { at, invariant, getOrMake } from "../support/invariant.ts";
import type { Actual } from "./actual-sizes.ts";
import { agreed } from "../host/alike/classes.ts";
import { hasEqualParts, type LocalLayout, layoutOfShape, layoutsOfShape, wholeExtents } from "./local-layout.ts";
import { addTemporary, bind, type BufferRequest, stateOf } from "./memory.ts";
import { failRecording, recordedRank, ranksOf, type Recorder } from "./recorder.ts";

export function tensorOf({ program }: Recorder, id: TensorId): Tensor {
  return at(program.tensors, id);
}

/** The local layout of a tensor of the program or of a host unit. */
export function localLayoutOf(recorder: Recorder, tensor: Tensor): LocalLayout {
  return getOrMake(recorder.layouts, tensor, () => localLayout(recorder, tensor, localExtents(recorder, tensor)));
}

/** The layout on this rank of a tensor whose shape over all devices is `shape`. */
export function localLayout(recorder: Recorder, tensor: Tensor, shape: readonly number[]): LocalLayout {
  if (recorder.alike === null) return layoutOfShape(tensor, shape, recordedRank(recorder));
  if (!isSharded(tensor) || haveEqualShares(tensor, shape)) return layoutOfShape(tensor, shape, null);
  const sameLayout = (a: LocalLayout, b: LocalLayout): boolean =>
    sameNumbers(a.shape, b.shape) && sameNumbers(a.strides, b.strides);
  return agreed(layoutsOfShape(tensor, shape, ranksOf(recorder)), sameLayout);
}

/** Whether each axis divides by all its parts: then every device has as much. */
function haveEqualShares({ domain }: Tensor, shape: readonly number[]): boolean {
  return withoutReductions(domain.logical).every((axis, position) => hasEqualParts(domain, axis, at(shape, position)));
}

function isSharded({ domain }: Tensor): boolean {
  return domain.loop.some(({ parallelType }) => isDID(parallelType));
}

/** The extents over all devices that the tensor is declared with. */
export function localExtents(recorder: Recorder, tensor: Tensor): readonly number[] {
  const known = recorder.extents.get(tensor);
  if (known !== undefined) return known;
  const inputs = recorder.program.inputs.map((id) => tensorOf(recorder, id));
  const extents = wholeExtents(tensor, recorder.sizeOf, inputs);
  recorder.extents.set(tensor, extents);
  return extents;
}

/** The layout of the longest share that any device has. Chunks of uneven shares may be as long on every device. */
export function longestLayout(recorder: Recorder, tensor: Tensor): LocalLayout {
  const own = localLayoutOf(recorder, tensor);
  if (!isSharded(tensor)) return own;
  return layoutOfShape(tensor, localExtents(recorder, tensor), null);
}

/** Whether this rank holds data of the tensor. A tensor without a mesh is on device 0. */
export function isHere(recorder: Recorder, { mesh }: Tensor): boolean {
  const isOn = (rank: number): boolean => (mesh === null ? rank === 0 : mesh.has(rank));
  return agreed(ranksOf(recorder).map(isOn));
}

/** The memory that the tensor is bound to; null if none. Throws `not-bound` for a slice of freed memory. */
export function findView(recorder: Recorder, id: TensorId): View | null {
  const binding = recorder.memory.bindings.get(id);
  if (binding === undefined) return null;
  const { freedBy } = stateOf(recorder.memory, binding.view);
  if (freedBy === null) return binding.view;
  return failRecording(recorder, "not-bound", `T${id} is a slice of memory that was deallocated`, {
    found: `an earlier Deallocate of T${freedBy}`,
    expected: "memory that lives as long as its slices are used",
    help: `move the Deallocate of T${freedBy} after the last use of T${id}`,
  });
}

/** The memory that the tensor is bound to. Throws `not-bound`. */
export function viewOf(recorder: Recorder, id: TensorId): View {
  return findView(recorder, id) ?? notBound(recorder, id);
}

function notBound(recorder: Recorder, id: TensorId): never {
  const tensor = tensorOf(recorder, id);
  const elsewhere = !isHere(recorder, tensor);
  return failRecording(recorder, {
    code: "not-bound",
    message: `T${id} is used on rank ${recordedRank(recorder)}, where it is not bound`,
    found: elsewhere
      ? `${printTensor(tensor)}${tensor.mesh === null ? " without a mesh, which is on device 0" : ""}`
      : `no earlier statement that writes or allocates T${id}`,
    expected: elsewhere ? "a tensor whose mesh has this rank" : "an input, or a tensor bound by an earlier statement",
    help: elsewhere
      ? "remove the statement from this rank's program, or add the rank to the mesh"
      : `allocate T${id} or write it before`,
  });
}

/**
 * The memory that an op writes: the tensor's, or new memory on the current stream if the tensor is not bound. `actual`
 * has its sizes if they are not the declared ones.
 */
export function outputView(recorder: Recorder, id: TensorId, actual: Actual | null = null): View {
  const view = findView(recorder, id) ?? allocate(recorder, id);
  const known = recorder.actuals.get(id);
  // A chunk has the sizes that it was bound with.
  if (known !== undefined && known.chunk !== null && actual !== null && sameNumbers(known.local, actual.local))
    return view;
  if (actual !== null) return resize(recorder, id, actual.local, actual);
  if (known === undefined || known.chunk !== null) return view;
  return resize(recorder, id, localLayoutOf(recorder, tensorOf(recorder, id)).shape, null);
}

/** Binds the tensor to the first elements of its memory along every axis. It keeps its memory if that is too small. */
function resize(recorder: Recorder, id: TensorId, shape: readonly number[], actual: Actual | null): View {
  const { memory, actuals } = recorder;
  const binding = memory.bindings.get(id);
  invariant(binding !== undefined, "an output has memory", { id });
  if (actual === null) actuals.delete(id);
  else actuals.set(id, { ...actual, chunk: actuals.get(id)?.chunk ?? null });
  if (sameNumbers(binding.view.shape, shape)) return binding.view;
  const room = binding.room ?? binding.view;
  if (shape.some((extent, axis) => extent > at(room.shape, axis))) return binding.view;
  const view = { ...room, shape };
  memory.bindings.set(id, { ...binding, view, room });
  return view;
}

/** Binds the tensor to new memory, which has room for the longest share of any device. */
export function allocate(recorder: Recorder, id: TensorId): View {
  const tensor = tensorOf(recorder, id);
  const { current } = recorder.streams;
  const layout = longestLayout(recorder, tensor);
  const room = addTemporary(recorder.memory, { ...requestOf(tensor), layout }, current);
  const { shape } = localLayoutOf(recorder, tensor);
  const view = sameNumbers(shape, room.shape) ? room : { ...room, shape };
  bind(recorder.memory, id, { view, room, owns: true, aliasedBy: null }, current);
  recorder.actuals.delete(id);
  return view;
}

/** The buffer for this rank's data of an input or output. */
export function bufferRequest(recorder: Recorder, tensor: Tensor): BufferRequest {
  return { ...requestOf(tensor), layout: localLayoutOf(recorder, tensor) };
}

function requestOf({ id, dtype, memory }: Tensor): Omit<BufferRequest, "layout"> {
  return { name: `T${id}`, dtype, symmetric: memory === "symmetric" };
}
