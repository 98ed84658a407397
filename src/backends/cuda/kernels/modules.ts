/** Loads compiled kernels into the GPU, each source once, and launches them with argument blocks made beforehand. */
import type { HostBlocks } from "../memory/host-blocks.ts";
import { CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES } from "../bindings/driver-api.ts";
import { type Gpu, out } from "../gpu.ts";
import type { Compiler } from "./compiler.ts";
import { kernelName, type KernelSource } from "./kernel-source.ts";

export interface Modules extends Disposable {
  /** A launch of the kernel with these pointers on this stream. Running it allocates nothing. */
  readonly prepareLaunch: (
    source: Omit<KernelSource, "parameters">,
    pointers: readonly number[],
    stream: number,
    blocks: HostBlocks,
  ) => () => void;
}

export function createModules(gpu: Gpu, compiler: Compiler): Modules {
  const functions = new Map<string, number>();
  const modules: number[] = [];
  const functionOf = (text: string): number => {
    const known = functions.get(text);
    if (known !== undefined) return known;
    const image = compiler.compile(text);
    const module = out((value) => gpu.call.cuModuleLoadData(value, image));
    modules.push(module);
    const fn = out((value) => gpu.call.cuModuleGetFunction(value, module, kernelName));
    functions.set(text, fn);
    return fn;
  };
  return {
    prepareLaunch: ({ text, grid, block, sharedBytes = 0 }, pointers, stream, blocks) => {
      const fn = functionOf(text);
      // The driver asks before it gives a block more than 48 KiB.
      if (sharedBytes > 0)
        gpu.call.cuFuncSetAttribute(fn, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, sharedBytes);
      const parameters = pointerParameters(pointers, blocks);
      const [gridX, gridY, gridZ] = grid;
      const [blockX, blockY, blockZ] = block;
      return () => {
        const status = gpu.raw.cuLaunchKernel(
          fn,
          gridX,
          gridY,
          gridZ,
          blockX,
          blockY,
          blockZ,
          sharedBytes,
          stream,
          parameters,
          0,
        );
        if (status !== 0) gpu.check(status, "cuLaunchKernel");
      };
    },
    [Symbol.dispose]: () => {
      functions.clear();
      for (const module of modules.splice(0)) gpu.call.cuModuleUnload(module);
    },
  };
}

/** The `kernelParams` of cuLaunchKernel: the addresses of the arguments, which follow them. */
function pointerParameters(pointers: readonly number[], blocks: HostBlocks): number {
  const { address, view } = blocks.take(16 * pointers.length);
  const values = 8 * pointers.length;
  pointers.forEach((pointer, i) => {
    view.setBigUint64(8 * i, BigInt(address + values + 8 * i), true);
    view.setBigUint64(values + 8 * i, BigInt(pointer), true);
  });
  return address;
}
