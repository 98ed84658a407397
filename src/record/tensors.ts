/** A rank's tensors: their local layouts, and the memory that they are bound to. */
import type { View } from "../commands/view.ts";
import type { Tensor, TensorId } from "../ir/domain.ts";
import { printTensor } from "../ir/print-tensor.ts";
import { at } from "../support/invariant.ts";
import { type Layout, localLayout } from "./local-layout.ts";
import { addTemporary, bind, type BufferRequest, stateOf } from "./memory.ts";
import { fail, type Recorder } from "./recorder.ts";

export function tensorOf({ program }: Recorder, id: TensorId): Tensor {
  return at(program.tensors, id);
}

/** The local layout of a tensor of the program or of a host unit. */
export function layoutOf(recorder: Recorder, tensor: Tensor): Layout {
  const known = recorder.layouts.get(tensor);
  if (known !== undefined) return known;
  const inputs = recorder.program.inputs.map((id) => tensorOf(recorder, id));
  const layout = localLayout(tensor, recorder.sizeOf, inputs);
  recorder.layouts.set(tensor, layout);
  return layout;
}

/** Whether this rank holds data of the tensor. A tensor without a mesh is on device 0. */
export function isHere({ options: { rank } }: Recorder, { mesh }: Tensor): boolean {
  return mesh === null ? rank === 0 : mesh.has(rank);
}

/** The memory that the tensor is bound to; null if none. Throws `not-bound` for a slice of freed memory. */
export function findView(recorder: Recorder, id: TensorId): View | null {
  const binding = recorder.memory.bindings.get(id);
  if (binding === undefined) return null;
  const { freedBy } = stateOf(recorder.memory, binding.view);
  if (freedBy === null) return binding.view;
  return fail(recorder, {
    code: "not-bound",
    message: `T${id} is a slice of memory that was deallocated`,
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
  return fail(recorder, {
    code: "not-bound",
    message: `T${id} is used on rank ${recorder.options.rank}, where it is not bound`,
    found: elsewhere
      ? `${printTensor(tensor)}${tensor.mesh === null ? " without a mesh, which is on device 0" : ""}`
      : `no earlier statement that writes or allocates T${id}`,
    expected: elsewhere ? "a tensor whose mesh has this rank" : "an input, or a tensor bound by an earlier statement",
    help: elsewhere
      ? "remove the statement from this rank's program, or add the rank to the mesh"
      : `allocate T${id} or write it before`,
  });
}

/** The memory that an op writes: the tensor's, or new memory on the current stream if the tensor is not bound. */
export function outputView(recorder: Recorder, id: TensorId): View {
  return findView(recorder, id) ?? allocate(recorder, id);
}

/** Binds the tensor to new memory. */
export function allocate(recorder: Recorder, id: TensorId): View {
  const tensor = tensorOf(recorder, id);
  const { current } = recorder.streams;
  const view = addTemporary(recorder.memory, bufferRequest(recorder, tensor), current);
  bind(recorder.memory, id, { view, owns: true, aliasedBy: null }, current);
  return view;
}

/** The buffer for this rank's data of the tensor. */
export function bufferRequest(recorder: Recorder, tensor: Tensor): BufferRequest {
  const { id, dtype, memory } = tensor;
  return { name: `T${id}`, dtype, symmetric: memory === "symmetric", layout: layoutOf(recorder, tensor) };
}
