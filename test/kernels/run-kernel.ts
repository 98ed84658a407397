/** Runs a kernel over a separate memory, with operands laid out by their strides. */
import { isDeepStrictEqual } from "node:util";
import type { Kernel, Operand } from "../../src/commands/kernel.ts";
import { createKernelLibrary, scratchBytes, type SimdUse } from "../../src/kernels/kernel-library.ts";
import { type DType, dtypes } from "../../src/numerics/dtype.ts";
import { elementsOf, storageView, type Value } from "../../src/numerics/tensor/host-tensor.ts";
import { at, getOrMake } from "../../src/support/invariant.ts";
import { createWasmMemory } from "../../src/support/webassembly.ts";

/** Row-major elements of an operand. */
export type Values = readonly Value[];

export function operand(dtype: DType, shape: readonly number[], strides: readonly number[] = rowMajor(shape)): Operand {
  return { dtype, shape, strides };
}

export function rowMajor(shape: readonly number[]): readonly number[] {
  return shape.map((_, axis) => count(shape.slice(axis + 1)));
}

export function count(shape: readonly number[]): number {
  return shape.reduce((product, extent) => product * extent, 1);
}

type Laid = Pick<Operand, "shape" | "strides">;

const knownOffsets = new WeakMap<Laid, readonly number[]>();

/** Offsets in elements, in row-major order of the shape. */
export function offsetsOf(operand: Laid): readonly number[] {
  return getOrMake(knownOffsets, operand, () => {
    let offsets = [0];
    for (const [axis, extent] of operand.shape.entries()) {
      const stride = at(operand.strides, axis);
      const inner: number[] = [];
      for (const offset of offsets) for (let i = 0; i < extent; i++) inner.push(offset + i * stride);
      offsets = inner;
    }
    return offsets;
  });
}

export interface RunOptions {
  readonly shared?: boolean;
  /** The output is this input's memory. */
  readonly inPlace?: number;
  /** Row-major elements that the outputs hold before, for kernels that add to them. */
  readonly held?: readonly Values[];
}

/**
 * Row-major elements of every output. The kernel runs in JavaScript and, where supported, in WebAssembly. Checks that
 * both give the same bits and write only the outputs' elements and the scratch.
 */
export function runKernel(kernel: Kernel, inputs: readonly Values[], options: RunOptions = {}): readonly Values[] {
  const [plain, simd] = (["never", "always"] as const).map((use) => runForm(kernel, inputs, use, options));
  if (!isDeepStrictEqual(plain, simd)) throw new Error(`WebAssembly and JavaScript differ: ${JSON.stringify(kernel)}`);
  return simd ?? [];
}

/** A kernel in memory of its own, with its operands one after the other. */
interface Form {
  readonly bytes: Uint8Array;
  readonly addresses: readonly number[];
  readonly scratch: { readonly address: number; readonly bytes: number };
  readonly run: (inputs: readonly number[], outputs: readonly number[]) => void;
}

const forms = new WeakMap<Kernel, Map<string, Form>>();

/** Compiled once for each kernel object: a test of many values runs one kernel. */
function formOf(kernel: Kernel, simd: SimdUse, shared: boolean): Form {
  const ofKernel = forms.get(kernel) ?? new Map<string, Form>();
  forms.set(kernel, ofKernel);
  const key = `${simd} ${shared}`;
  const form = ofKernel.get(key) ?? newForm(kernel, simd, shared);
  ofKernel.set(key, form);
  return form;
}

function newForm(kernel: Kernel, simd: SimdUse, shared: boolean): Form {
  const needed = scratchBytes(kernel);
  let next = 256;
  const place = (bytes: number): number => {
    const address = next;
    next = Math.ceil((next + bytes) / 64) * 64 + 64;
    return address;
  };
  const addresses = [...kernel.inputs, ...kernel.outputs].map((each) => place(spanBytes(each)));
  const scratch = { address: place(needed), bytes: needed };
  const memory = createWasmMemory(next, { shared });
  const run = createKernelLibrary({ memory, scratch, simd }).prepare(kernel);
  return { bytes: new Uint8Array(memory.buffer), addresses, scratch, run };
}

function runForm(kernel: Kernel, inputs: readonly Values[], simd: SimdUse, options: RunOptions): readonly Values[] {
  const { bytes, addresses, scratch, run } = formOf(kernel, simd, options.shared ?? false);
  bytes.fill(guard);

  const inputAddresses = addresses.slice(0, kernel.inputs.length);
  const outputAddresses = kernel.outputs.map((_, i) =>
    options.inPlace === undefined
      ? at(addresses, kernel.inputs.length + i)
      : at(inputAddresses, (options.inPlace + i) % kernel.inputs.length),
  );
  const elements = ({ dtype }: Operand, address: number) =>
    elementsOf(dtype, storageView(dtype, bytes.buffer, address));
  for (const [i, each] of kernel.inputs.entries()) {
    const target = elements(each, at(inputAddresses, i));
    for (const [j, offset] of offsetsOf(each).entries()) target.set(offset, at(at(inputs, i), j));
  }
  const hold = (): void => {
    for (const [i, values] of (options.held ?? []).entries()) {
      const each = at(kernel.outputs, i);
      const target = elements(each, at(outputAddresses, i));
      for (const [j, offset] of offsetsOf(each).entries()) target.set(offset, at(values, j));
    }
  };
  hold();
  const before = bytes.slice();
  // Twice, so that no result depends on the scratch's contents.
  if (options.inPlace === undefined) run(inputAddresses, outputAddresses);
  hold();
  run(inputAddresses, outputAddresses);
  const results = kernel.outputs.map((each, i) => {
    const address = at(outputAddresses, i);
    const source = elements(each, address);
    const size = dtypes[each.dtype].bytes;
    return offsetsOf(each).map((offset) => {
      const value = source.get(offset);
      const start = address + offset * size;
      bytes.set(before.subarray(start, start + size), start);
      return value;
    });
  });
  bytes.set(before.subarray(scratch.address, scratch.address + scratch.bytes), scratch.address);
  if (Buffer.compare(bytes, before) !== 0) throw new Error("a byte beside the outputs was written");
  return results;
}

/** The contents of an operand after `values` were written: along a stride of 0, the last one counts. */
export function asStored(operand: Operand, values: Values): Values {
  const offsets = offsetsOf(operand);
  const last = new Map(offsets.map((offset, i) => [offset, at(values, i)]));
  return offsets.map((offset) => last.get(offset) ?? 0);
}

const guard = 0xa5;

export function spanBytes({ dtype, shape, strides }: Operand): number {
  const last = shape.reduce((sum, extent, axis) => sum + (extent - 1) * at(strides, axis), 0);
  return (last + 1) * dtypes[dtype].bytes;
}
