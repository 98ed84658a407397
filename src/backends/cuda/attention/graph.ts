/**
 * A graph of cuDNN's operations as plain data: tensors of four axes, and the operations in order. A virtual tensor
 * exists inside of the kernel only.
 */
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";
import { aligned, type Four, type PlacedOperand } from "./layout.ts";

export type GraphType = "half" | "bfloat16" | "float" | "int32" | "bool";

export interface GraphTensor {
  /** Its position among the graph's tensors, from 1: cuDNN's unique id. */
  readonly id: number;
  /** In messages. */
  readonly name: string;
  readonly type: GraphType;
  readonly dims: Four;
  /** In elements. */
  readonly strides: Four;
  readonly memory: TensorMemory;
}

/** operand: of the kernel, inputs first. number: one element that the host gives. scratch: bytes after the copies. */
export type TensorMemory =
  | { readonly kind: "virtual" }
  | { readonly kind: "number"; readonly value: number | "-infinity" }
  | { readonly kind: "operand"; readonly position: number }
  | { readonly kind: "scratch" };

export type PointwiseMode =
  "ADD" | "MUL" | "DIV" | "SUB" | "EXP" | "LOG" | "CMP_GT" | "CMP_GE" | "GEN_INDEX" | "BINARY_SELECT";

/** Each has a name for messages, and refers to tensors by id. Pointwise inputs are x, b and t of the header. */
export type GraphOp =
  | {
      readonly kind: "matmul";
      readonly name: string;
      readonly inputs: readonly number[];
      readonly to: number;
    }
  | {
      readonly kind: "pointwise";
      readonly name: string;
      readonly mode: PointwiseMode;
      readonly compute: GraphType;
      /** Of GEN_INDEX. */
      readonly axis: number | null;
      readonly inputs: readonly number[];
      readonly to: number;
    }
  | {
      readonly kind: "reduction";
      readonly name: string;
      readonly operator: "ADD" | "MAX";
      readonly inputs: readonly number[];
      readonly to: number;
    }
  | {
      readonly kind: "reshape";
      readonly name: string;
      readonly inputs: readonly number[];
      readonly to: number;
    };

export interface CudnnGraph {
  readonly tensors: readonly GraphTensor[];
  readonly ops: readonly GraphOp[];
}

interface Result {
  /** Float if omitted. */
  readonly type?: GraphType;
  /** Of elementwise ops, the larger extents of the inputs if omitted. */
  readonly dims?: Four;
  readonly strides?: Four;
  /** A tensor that receives the result, instead of a new one. */
  readonly to?: GraphTensor;
}

export interface GraphBuilder {
  readonly operand: (
    name: string,
    type: GraphType,
    position: number,
    placed: Pick<PlacedOperand, "dims" | "strides">,
  ) => GraphTensor;
  readonly number: (name: string, type: GraphType, value: number | "-infinity") => GraphTensor;
  /** A tensor of float in the scratch. */
  readonly scratch: (name: string, dims: Four) => GraphTensor;
  readonly matmul: (name: string, a: GraphTensor, b: GraphTensor, result?: Result) => GraphTensor;
  readonly pointwise: (
    name: string,
    mode: PointwiseMode,
    inputs: readonly GraphTensor[],
    result?: Result & { readonly compute?: GraphType; readonly axis?: number },
  ) => GraphTensor;
  readonly reduction: (name: string, operator: "ADD" | "MAX", x: GraphTensor, result: Result) => GraphTensor;
  /** The same elements with other axes. */
  readonly reshape: (name: string, x: GraphTensor, result: Result) => GraphTensor;
  readonly graph: () => CudnnGraph;
}

export function createCudnnGraph(): GraphBuilder {
  const tensors: GraphTensor[] = [];
  const ops: GraphOp[] = [];
  const add = (described: Omit<GraphTensor, "id">): GraphTensor => {
    const tensor = { id: tensors.length + 1, ...described };
    tensors.push(tensor);
    return tensor;
  };
  const resultOf = (name: string, dims: Four, result: Result): GraphTensor => {
    if (result.to !== undefined) return result.to;
    const own = result.dims ?? dims;
    const strides = result.strides ?? rowMajorStrides(own);
    return add({ name, type: result.type ?? "float", dims: own, strides, memory: { kind: "virtual" } });
  };
  return {
    operand: (name, type, position, { dims, strides }) =>
      add({ name, type, dims, strides, memory: { kind: "operand", position } }),
    number: (name, type, value) =>
      add({ name, type, dims: [1, 1, 1, 1], strides: [1, 1, 1, 1], memory: { kind: "number", value } }),
    scratch: (name, dims) =>
      add({ name, type: "float", dims, strides: rowMajorStrides(dims), memory: { kind: "scratch" } }),
    matmul: (name, a, b, result = {}) => {
      const to = resultOf(name, [a.dims[0], Math.max(a.dims[1], b.dims[1]), a.dims[2], b.dims[3]], result);
      ops.push({ kind: "matmul", name, inputs: [a.id, b.id], to: to.id });
      return to;
    },
    pointwise: (name, mode, inputs, { compute = "float", axis, ...result } = {}) => {
      const largest = (i: 0 | 1 | 2 | 3): number => Math.max(...inputs.map(({ dims }) => dims[i]));
      const to = resultOf(name, [largest(0), largest(1), largest(2), largest(3)], result);
      ops.push({
        kind: "pointwise",
        name,
        mode,
        compute,
        axis: axis ?? null,
        inputs: inputs.map(({ id }) => id),
        to: to.id,
      });
      return to;
    },
    reduction: (name, operator, x, result) => {
      const to = resultOf(name, x.dims, result);
      ops.push({ kind: "reduction", name, operator, inputs: [x.id], to: to.id });
      return to;
    },
    reshape: (name, x, result) => {
      const to = resultOf(name, x.dims, result);
      ops.push({ kind: "reshape", name, inputs: [x.id], to: to.id });
      return to;
    },
    graph: () => ({ tensors, ops }),
  };
}

/** The last two axes exchanged, over the same memory. */
export function exchanged<T extends Pick<GraphTensor, "dims" | "strides">>({
  dims,
  strides,
}: T): Pick<GraphTensor, "dims" | "strides"> {
  const swap = ([first, second, third, fourth]: Four): Four => [first, second, fourth, third];
  return { dims: swap(dims), strides: swap(strides) };
}

export function rowMajorStrides([, heads, rows, columns]: Four): Four {
  return [heads * rows * columns, rows * columns, columns, 1];
}

/** All tensors in the scratch are float. */
export function scratchBytesOf({ tensors }: CudnnGraph): number {
  return tensors.reduce((sum, tensor) => sum + scratchBytes(tensor), 0);
}

/** By id: the places of the graph's tensors in the scratch. */
export function scratchPlaces({ tensors }: CudnnGraph): ReadonlyMap<number, number> {
  const places = new Map<number, number>();
  let next = 0;
  for (const tensor of tensors) {
    if (tensor.memory.kind === "scratch") places.set(tensor.id, next);
    next += scratchBytes(tensor);
  }
  return places;
}

function scratchBytes({ memory, dims }: GraphTensor): number {
  return memory.kind === "scratch" ? aligned(4 * elementCount(dims)) : 0;
}
