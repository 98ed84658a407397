/** Whether a string is one of a list of literals: for values that come from outside the type checker. */
export function isOneOf<T extends string>(values: readonly T[], value: unknown): value is T {
  return values.some((candidate) => candidate === value);
}
