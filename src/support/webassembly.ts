/**
 * Types for the subset of the WebAssembly API that Braid uses, because the core compiles without the types of the DOM
 * and Node. The global object is looked up at each call, so importing this file does not need WebAssembly.
 */

/** A WebAssembly.Memory. It must have a maximum if it is shared. */
export interface WasmMemory {
  readonly buffer: ArrayBufferLike;
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

/** A memory of at least `bytes` bytes, at most 4 GiB, that cannot grow. */
export function createWasmMemory(bytes: number, { shared = false } = {}): WasmMemory {
  const pages = Math.max(1, Math.ceil(bytes / pageBytes));
  return new (api().Memory)({ initial: pages, maximum: pages, shared });
}

export function isShared(memory: WasmMemory): boolean {
  return Object.prototype.toString.call(memory.buffer) === "[object SharedArrayBuffer]";
}

/** Compiles and instantiates a module that imports only `env.memory` and exports functions of numbers. */
export function instantiateWasm(bytes: Uint8Array, memory: WasmMemory): WasmExports {
  const { Module, Instance } = api();
  return new Instance(new Module(bytes), { env: { memory } }).exports;
}
