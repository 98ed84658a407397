/**
 * Writes the body of one function: its code in order, and its locals. The locals of a finished block are reused, so
 * that unrolled copies of a body share them.
 */
import { at } from "../invariant.ts";
import { set } from "./instructions.ts";
import type { Code, LocalType } from "./encoding.ts";

export interface FunctionWriter {
  readonly emit: (code: Code) => void;
  readonly local: (type: LocalType) => number;
  /** A v128 local that holds the value of `code`. */
  readonly keep: (code: Code) => number;
  /** Runs `write` and then frees the locals that it made. */
  readonly block: (write: () => void) => void;
  /** Returns the code that `write` emits, instead of emitting it. */
  readonly collect: (write: () => void) => Code;
  readonly locals: () => readonly LocalType[];
  readonly body: () => Code;
}

export function createFunctionWriter(parameters: number): FunctionWriter {
  let body: number[] = [];
  const locals: LocalType[] = [];
  const free: { readonly [T in LocalType]: number[] } = { i32: [], v128: [] };
  let inUse: number[] = [];

  const local = (type: LocalType): number => {
    const made = free[type].pop() ?? parameters + locals.push(type) - 1;
    inUse.push(made);
    return made;
  };
  const emit = (code: Code): void => {
    for (const byte of code) body.push(byte);
  };
  return {
    emit,
    local,
    keep: (code) => {
      const kept = local("v128");
      emit(set(kept, code));
      return kept;
    },
    block: (write) => {
      const outer = inUse;
      inUse = [];
      write();
      for (const each of inUse.toReversed()) free[at(locals, each - parameters)].push(each);
      inUse = outer;
    },
    collect: (write) => {
      const before = body;
      body = [];
      write();
      const collected = body;
      body = before;
      return collected;
    },
    locals: () => locals,
    body: () => body,
  };
}
