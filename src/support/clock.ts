/** Every platform that Braid runs on has it, and the compiler is told of none. */
declare const performance: { readonly now: () => number };

/** Milliseconds since any fixed time. */
export function clock(): number {
  return performance.now();
}
