/**
 * `invariant` checks a guarantee of Braid itself. A failure is a bug in Braid, never a mistake of the user. The message
 * has the context for a bug report.
 */
export class InvariantError extends Error {
  override readonly name = "InvariantError";
}

export function invariant(condition: unknown, what: string, context?: unknown): asserts condition {
  if (condition) return;
  const detail = context === undefined ? "" : ` (${JSON.stringify(context)})`;
  throw new InvariantError(
    `invariant: ${what}${detail}. This is a bug in Braid; please report it with the program that caused it.`,
  );
}

/** `array[index]`, where Braid guarantees that the element exists. */
export function at<T>(array: ArrayLike<T>, index: number, what = "index in range"): T {
  const value = array[index];
  if (value === undefined) invariant(false, what, { index, length: array.length });
  return value as T;
}
