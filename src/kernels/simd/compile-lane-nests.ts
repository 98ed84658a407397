/** The nests of a kernel that run in WebAssembly: which they are, and their functions, compiled as one module. */
import { invariant } from "../../support/invariant.ts";
import { instantiateWasm, isShared, type WasmMemory } from "../../support/webassembly.ts";
import type { Nest } from "../nests/nest.ts";
import { hasLanes, type LaneNest, writeLaneNest } from "./lane-nest.ts";
import { encodeModule } from "./wasm-encoding.ts";

/** `auto`: where it pays. `always`: wherever a nest has a form in WebAssembly, however small. */
export type SimdUse = "auto" | "always" | "never";

/** Fewer elements than this take less time than the module takes to compile. */
const fewestElements = 1024;

export function usesLanes(nest: Nest, use: SimdUse): boolean {
  switch (use) {
    case "never":
      return false;
    case "always":
      return hasLanes(nest);
    case "auto": {
      const elements = [...nest.loops, ...nest.reducedLoops].reduce((count, { extent }) => count * extent, 1);
      // Without neighbours there is one element in four lanes.
      return elements >= fewestElements && (nest.loops.at(-1)?.extent ?? 1) > 1 && hasLanes(nest);
    }
  }
}

export interface CompiledNest {
  readonly operands: LaneNest["operands"];
  /** Takes the byte addresses of `operands`. */
  readonly run: (...addresses: readonly number[]) => void;
}

/** By the nest. `scratch` is the address of what nests know as scratch. */
export function compileLaneNests(
  nests: readonly Nest[],
  memory: WasmMemory,
  scratch: number,
): ReadonlyMap<Nest, CompiledNest> {
  if (nests.length === 0) return new Map();
  const written = nests.map((nest, i) => ({ nest, ...writeLaneNest(nest, `nest${i}`, scratch) }));
  const kind = isShared(memory) ? "shared" : "unshared";
  const functions = instantiateWasm(
    encodeModule(
      written.map(({ code }) => code),
      kind,
    ),
    memory,
  );
  return new Map(
    written.map(({ nest, code, operands }) => {
      const run = functions[code.name];
      invariant(run !== undefined, "a module exports its functions", { name: code.name });
      return [nest, { operands, run }];
    }),
  );
}
