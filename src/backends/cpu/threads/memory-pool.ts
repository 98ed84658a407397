/**
 * The shared memories of a group. A released memory is zeroed and used again, and grows if it is too small: the
 * collector of the threads that share a memory does not see its size, so an unused one would stay for a long time.
 */
import type { Program } from "../../../commands/program.ts";
import { growWasmMemory, type WasmMemory } from "../../../support/webassembly.ts";
import { type AddressSpace, createMemory } from "../address-space.ts";

export interface MemoryPool {
  /** A zeroed memory for the Program. Throws `memory-limit`. */
  readonly take: (program: Program, space: AddressSpace) => WasmMemory;
  readonly give: (memory: WasmMemory) => void;
}

export function createMemoryPool(): MemoryPool {
  // By size, the smallest first.
  const free: WasmMemory[] = [];
  const reuse = (bytes: number): WasmMemory | undefined => {
    const fitting = free.findIndex(({ buffer }) => buffer.byteLength >= bytes);
    const [memory] = free.splice(fitting, 1);
    return memory === undefined || growWasmMemory(memory, bytes) ? memory : undefined;
  };
  return {
    take: (program, space) => {
      const memory = reuse(space.bytes);
      if (memory === undefined) return createMemory(program, space, { shared: true });
      new Uint8Array(memory.buffer, 0, space.bytes).fill(0);
      return memory;
    },
    give: (memory) => {
      const place = free.findIndex(({ buffer }) => buffer.byteLength >= memory.buffer.byteLength);
      free.splice(place < 0 ? free.length : place, 0, memory);
    },
  };
}
