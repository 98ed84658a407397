/**
 * Ends every switch over a union. A missing case is a compile error; an invalid value at run time throws a clear error.
 */
export function unreachable(value: never): never {
  throw new Error(`invariant: no case for ${JSON.stringify(value)}`);
}
