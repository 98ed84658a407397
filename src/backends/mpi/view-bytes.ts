/** The bytes of a view in a memory, as one message has them: its elements in row-major order. */
import { contiguousStrides, elementCount, type View } from "../../commands/view.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { type SharedBytes, sharedBytes } from "./mpi-messages.ts";

export interface ViewBytes {
  /** The memory itself where the elements lie in that order, otherwise a buffer of its own. */
  readonly bytes: SharedBytes;
  /** Copies the elements from the memory into `bytes`. */
  readonly pack: () => void;
  /** Copies the elements from `bytes` into the memory. */
  readonly unpack: () => void;
}

/** `address`: of the view's first element. */
export function viewBytes(memory: SharedBytes, address: number, { dtype, shape, strides }: View): ViewBytes {
  const { bytes: size } = dtypes[dtype];
  const length = size * elementCount(shape);
  const packed = contiguousStrides(shape);
  const isPacked = shape.every((extent, axis) => extent === 1 || strides[axis] === packed[axis]);
  if (length === 0 || isPacked) {
    return { bytes: memory.subarray(address, address + length), pack: () => {}, unpack: () => {} };
  }
  const bytes = sharedBytes(length);
  // The innermost axes that lie side by side are one run.
  let inner = shape.length;
  while (inner > 0 && (at(shape, inner - 1) === 1 || strides[inner - 1] === packed[inner - 1])) inner--;
  const run = size * elementCount(shape.slice(inner));
  const eachRun = (visit: (inMemory: number, inBytes: number) => void): void => {
    let next = 0;
    const walk = (axis: number, start: number): void => {
      if (axis === inner) {
        visit(start, next);
        next += run;
        return;
      }
      for (let i = 0; i < at(shape, axis); i++) walk(axis + 1, start + i * size * at(strides, axis));
    };
    walk(0, address);
  };
  return {
    bytes,
    pack: () => eachRun((from, to) => bytes.set(memory.subarray(from, from + run), to)),
    unpack: () => eachRun((to, from) => memory.set(bytes.subarray(from, from + run), to)),
  };
}
