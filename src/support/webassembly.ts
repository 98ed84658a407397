/**
 * Types for the subset of the WebAssembly API that Braid uses, because the core compiles without the types of the DOM
 * and Node. The global object is looked up at each call, so importing this file does not need WebAssembly.
 */

/** A WebAssembly.Memory. It must have a maximum if it is shared. */
export interface WasmMemory {
  readonly buffer: ArrayBufferLike;
  grow(pages: number): number;
}

export type WasmExports = Readonly<Record<string, (...values: readonly number[]) => void>>;

interface Api {
  readonly Memory: new (limits: {
    readonly initial: number;
    readonly maximum?: number;
    readonly shared?: boolean;
  }) => WasmMemory;
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: unknown) => { readonly exports: WasmExports };
}

function api(): Api {
  return (globalThis as unknown as { readonly WebAssembly: Api }).WebAssembly;
}

const pageBytes = 65536;

/** The pages of a memory with 32-bit addresses. */
const mostPages = 65536;

/** A memory of at least `bytes` bytes, at most 4 GiB. A shared one can grow if the system lets it. */
export function createWasmMemory(bytes: number, { shared = false } = {}): WasmMemory {
  const initial = Math.max(1, Math.ceil(bytes / pageBytes));
  const { Memory } = api();
  if (shared) {
    try {
      return new Memory({ initial, maximum: mostPages, shared });
    } catch (error) {
      // The addresses that it could grow into may be more than the process may reserve.
      if (!(error instanceof RangeError)) throw error;
    }
  }
  return new Memory({ initial, maximum: initial, shared });
}

/** Makes the memory at least that large. False if it cannot grow so far. */
export function growWasmMemory(memory: WasmMemory, bytes: number): boolean {
  const pages = Math.ceil((bytes - memory.buffer.byteLength) / pageBytes);
  if (pages <= 0) return true;
  try {
    memory.grow(pages);
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

export function isShared(memory: WasmMemory): boolean {
  return Object.prototype.toString.call(memory.buffer) === "[object SharedArrayBuffer]";
}

interface NodeBuffers {
  from(buffer: ArrayBufferLike, offset: number, length: number): { fill(bytes: Uint8Array): unknown };
}

/** Below this number of bytes, `set` is as fast. */
const manyBytes = 4096;

/**
 * Copies bytes to `offset` of others, which must not overlap. `set` moves word by word where either side is shared,
 * which takes twice as long. Node's fill, whose value is repeated as often as it fits, is here one memcpy.
 */
export function copyBytes(from: Uint8Array, to: Uint8Array, offset = 0): void {
  const { Buffer } = globalThis as { readonly Buffer?: NodeBuffers };
  if (Buffer === undefined || from.length < manyBytes) to.set(from, offset);
  else Buffer.from(to.buffer, to.byteOffset + offset, from.length).fill(from);
}

/** Compiles and instantiates a module that imports only `env.memory` and exports functions of numbers. */
export function instantiateWasm(bytes: Uint8Array, memory: WasmMemory): WasmExports {
  const { Module, Instance } = api();
  return new Instance(new Module(bytes), { env: { memory } }).exports;
}
