/** Ends every switch over a union: a missing case is a compile error, and a bad value at run time a clear one. */
export function unreachable(value: never): never {
  throw new Error(`invariant: no case for ${JSON.stringify(value)}`);
}
