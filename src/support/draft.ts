/** An object under construction, whose fields are set one by one. */
export type Unfinished<T> = { -readonly [K in keyof T]?: T[K] | undefined };

/** The finished object. The caller guarantees that all fields are set; TypeScript cannot check it. */
export function finished<T>(draft: Unfinished<T>): T {
  return draft as T;
}
