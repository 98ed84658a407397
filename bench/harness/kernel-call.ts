/** Calls of one kernel of the CPU, in a memory of its own, with numbers of moderate size as its inputs. */
import { blasGemms } from "../../src/backends/cpu/blas/blas-gemms.ts";
import type { Blas } from "../../src/backends/cpu/blas/blas-library.ts";
import type { Kernel, Operand } from "../../src/commands/kernel.ts";
import { compile } from "../../src/compile/compile.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { createKernelLibrary, scratchBytes } from "../../src/kernels/kernel-library.ts";
import { type DType, dtypes } from "../../src/numerics/dtype.ts";
import { elementsOf, storageView } from "../../src/numerics/tensor/host-tensor.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { createWasmMemory } from "../../src/support/webassembly.ts";

export function operandOf(dtype: DType, shape: readonly number[], strides = rowMajor(shape)): Operand {
  return { dtype, shape, strides };
}

function rowMajor(shape: readonly number[]): readonly number[] {
  return shape.map((_, axis) => shape.slice(axis + 1).reduce((product, extent) => product * extent, 1));
}

/** The first kernel of a Fusion; undefined for one of copies alone. */
export function firstKernel(
  build: (...inputs: readonly TensorView[]) => TensorView,
  shapes: readonly (readonly number[])[],
  dtype: DType = "float",
): Kernel | undefined {
  const f = new Fusion();
  f.output(build(...shapes.map((shape) => f.input(shape, dtype))));
  return compile(f, { devices: 1, verify: "off" }).program.kernels[0];
}

/** Of all operands. Elements that are read repeatedly along an axis of stride 0 count once. */
export function bytesMoved({ inputs, outputs }: Kernel): number {
  return [...inputs, ...outputs].reduce((total, each) => total + bytesOf(each), 0);
}

function bytesOf({ dtype, shape, strides }: Operand): number {
  return shape.reduce((total, extent, axis) => total * (strides[axis] === 0 ? 1 : extent), dtypes[dtype].bytes);
}

interface CallOptions {
  readonly simd?: "always" | "never";
  readonly blas?: Blas | null;
}

export function kernelCall(kernel: Kernel, { simd, blas = null }: CallOptions = {}): () => void {
  const aligned = (bytes: number): number => Math.ceil(bytes / 64) * 64;
  const needed = aligned(scratchBytes(kernel));
  let next = needed;
  const addresses = [...kernel.inputs, ...kernel.outputs].map((each) => {
    const address = next;
    next += aligned(bytesOf(each));
    return address;
  });
  const memory = createWasmMemory(next);
  const random = createRandom(1);
  for (const [i, each] of kernel.inputs.entries()) {
    const { dtype } = each;
    const count = bytesOf(each) / dtypes[dtype].bytes;
    const elements = elementsOf(dtype, storageView(dtype, memory.buffer, at(addresses, i), count));
    const isWhole = dtypes[dtype].family !== "float";
    for (let j = 0; j < count; j++) {
      const whole = (j % 97) - 48;
      // Of variance 1, so that no exponential of attention is subnormal, which takes a CPU a hundred times as long.
      elements.set(j, dtype === "int64" ? BigInt(whole) : isWhole ? whole : (2 * random.float() - 1) * Math.sqrt(3));
    }
  }
  const library = createKernelLibrary({
    memory,
    scratch: { address: 0, bytes: needed },
    ...(simd === undefined ? {} : { simd }),
    ...(blas === null ? {} : { gemms: blasGemms(blas, memory.buffer) }),
  });
  const run = library.prepare(kernel);
  const [inputs, outputs] = [addresses.slice(0, kernel.inputs.length), addresses.slice(kernel.inputs.length)];
  return () => run(inputs, outputs);
}
