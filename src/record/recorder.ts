/**
 * A recording under way: the host program, the values of its names, and the tables that grow. It lives for one call of
 * `record`.
 */
import type { KernelId } from "../commands/command.ts";
import type { Operand } from "../commands/kernel.ts";
import type { PointToPoint } from "../commands/transfer.ts";
import type { View } from "../commands/view.ts";
import type { ExprId, HostProgram, Statement } from "../host/nodes.ts";
import type { Tensor, TensorId } from "../ir/domain.ts";
import { printTensor } from "../ir/print-tensor.ts";
import { evaluateScalar, type Scalar } from "../ir/scalar/scalar.ts";
import { printScalar } from "../ir/scalar/print.ts";
import { sizesFromMeshes } from "../ir/sizes.ts";
import { at } from "../support/invariant.ts";
import { type Layout, localLayout, type SizeOf } from "./local-layout.ts";
import { addTemporary, bind, type BufferRequest, createMemory, type Memory, stateOf } from "./memory.ts";
import type { RecordOptions } from "./options.ts";
import type { Post } from "./posts.ts";
import { createStreams, type Streams } from "./streams.ts";
import { createTape, failHere, type Tape } from "./tape.ts";

export interface Recorder {
  readonly program: HostProgram;
  readonly options: RecordOptions;
  readonly tape: Tape;
  readonly streams: Streams;
  readonly memory: Memory;
  /** Sizes of extents, which never change. */
  readonly sizeOf: SizeOf;
  /** Values of the indices of the loops under way. */
  readonly indices: Map<string, number>;
  readonly layouts: Map<Tensor, Layout>;
  /** Iterations of all loops so far. */
  iterations: number;
  /** The latest post of each communication. */
  readonly posts: Map<ExprId, Post>;
  /** The coalesced group under way. */
  group: PointToPoint[] | null;
  /** For each one-sided send and receive, what the latest ShareMemHandles shared. */
  readonly shared: Map<ExprId, SharedHandle>;
  /** The number of one-sided sends to, and receives from, each peer so far. */
  readonly sequences: Map<string, number>;
  readonly kernels: KernelCache;
}

/** Memory whose handle one peer has. */
export interface SharedHandle {
  readonly peer: number;
  readonly view: View;
}

/** Kernels by structure, and the last one of each statement: the next iteration mostly needs the same. */
export interface KernelCache {
  readonly byText: Map<string, KernelId>;
  readonly last: Map<Statement, LastKernel>;
}

export interface LastKernel {
  readonly inputs: readonly Operand[];
  readonly outputs: readonly Operand[];
  readonly kernel: KernelId;
}

export function createRecorder(program: HostProgram, options: RecordOptions): Recorder {
  const { rank, sizes, scalars, streams } = options;
  const values = new Map([
    ...sizesFromMeshes(program.tensors),
    ...sizes,
    ...scalars,
    ["rank", rank] as const,
    ["deviceIdx.x", rank] as const,
    ["numberOfStreams", streams] as const,
  ]);
  const tape = createTape(program);
  return {
    program,
    options,
    tape,
    streams: createStreams(tape),
    memory: createMemory(tape),
    sizeOf: (name) => values.get(name),
    indices: new Map(),
    layouts: new Map(),
    iterations: 0,
    posts: new Map(),
    group: null,
    shared: new Map(),
    sequences: new Map(),
    kernels: { byText: new Map(), last: new Map() },
  };
}

export function fail({ tape, options }: Recorder, diagnostic: Parameters<typeof failHere>[2]): never {
  return failHere(tape, options.rank, diagnostic);
}

/** The value of an index, peer, bound or predicate. Throws `scalar-missing` and `scalar-invalid`. */
export function evaluate(recorder: Recorder, scalar: Scalar): number {
  if (scalar.kind === "constant" && Number.isSafeInteger(scalar.value)) return scalar.value;
  const missing: string[] = [];
  const value = evaluateScalar(scalar, (name) => {
    const known = recorder.indices.get(name) ?? recorder.sizeOf(name);
    if (known === undefined) missing.push(name);
    return known;
  });
  if (value === undefined) {
    const names = [...new Set(missing)].join(", ");
    return fail(recorder, {
      code: "scalar-missing",
      message: `${names} has no value`,
      found: `${printScalar(scalar)} with no value for ${names}`,
      expected: "a loop index in its loop, an extent, rank, numberOfStreams, or a scalar that the call gives",
      help: `pass { scalars: { ${names}: ... } }, or correct the name`,
    });
  }
  // In JavaScript 0 * -1 is -0, which prints as 0 but differs as a key.
  if (Number.isSafeInteger(value)) return value === 0 ? 0 : value;
  return fail(recorder, {
    code: "scalar-invalid",
    message: "a scalar expression has no whole number as its value",
    found: `${printScalar(scalar)} is ${value}`,
    expected: "a whole number",
    help: "do not divide by 0, and keep numbers below 2^53",
  });
}

export function tensorOf({ program }: Recorder, id: TensorId): Tensor {
  return at(program.tensors, id);
}

/** What this rank holds of a tensor of the program or of a host unit. */
export function layoutOf(recorder: Recorder, tensor: Tensor): Layout {
  const known = recorder.layouts.get(tensor);
  if (known !== undefined) return known;
  const inputs = recorder.program.inputs.map((id) => tensorOf(recorder, id));
  const layout = localLayout(tensor, recorder.sizeOf, inputs);
  recorder.layouts.set(tensor, layout);
  return layout;
}

/** Whether this rank has a part of the tensor. A tensor without a mesh lies on device 0. */
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
    found: `the Deallocate of T${freedBy} stands before`,
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
    message: `T${id} is used on rank ${recorder.options.rank}, where nothing has bound it`,
    found: elsewhere
      ? `${printTensor(tensor)}${tensor.mesh === null ? " without a mesh, which lies on device 0" : ""}`
      : `no statement before that writes or allocates T${id}`,
    expected: elsewhere ? "a tensor whose mesh has this rank" : "an input, or a tensor bound by an earlier statement",
    help: elsewhere
      ? "leave the statement out of this rank's program, or put the rank in the mesh"
      : `allocate T${id} or write it before`,
  });
}

/** The memory that an op writes to: the tensor's, allocated on the current stream if it has none. */
export function outputView(recorder: Recorder, id: TensorId): View {
  return findView(recorder, id) ?? allocate(recorder, id);
}

/** Gives the tensor new memory. */
export function allocate(recorder: Recorder, id: TensorId): View {
  const tensor = tensorOf(recorder, id);
  const { current } = recorder.streams;
  const view = addTemporary(recorder.memory, bufferRequest(recorder, tensor), current);
  bind(recorder.memory, id, { view, owns: true, aliasedBy: null }, current);
  return view;
}

/** The buffer that this rank's part of the tensor needs. */
export function bufferRequest(recorder: Recorder, tensor: Tensor): BufferRequest {
  const { id, dtype, memory } = tensor;
  return { name: `T${id}`, dtype, symmetric: memory === "symmetric", layout: layoutOf(recorder, tensor) };
}
