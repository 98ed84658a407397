/** An object under construction, whose fields are set one by one. */
export type Draft<T> = { -readonly [K in keyof T]?: T[K] | undefined };

/** The finished object. The caller guarantees that all fields are set; TypeScript cannot check it. */
export function finished<T>(draft: Draft<T>): T {
  return draft as T;
}
