/** An object whose fields are set one by one. */
export type Draft<T> = { -readonly [K in keyof T]?: T[K] | undefined };

/** The object, now that all of its fields are set: the caller guarantees it, and TypeScript cannot see it. */
export function finished<T>(draft: Draft<T>): T {
  return draft as T;
}
