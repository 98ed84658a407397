/** Whether a value from outside the type checker is one of a list of string literals. */
export function isOneOf<T extends string>(values: readonly T[], value: unknown): value is T {
  return values.some((candidate) => candidate === value);
}
