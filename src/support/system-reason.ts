/** The operating system's message for a failed call: `no such file or directory`. */
export function systemReason(error: unknown): string {
  const [, words] = error instanceof Error ? (/^[A-Z]+: ([^,]+)/.exec(error.message) ?? []) : [];
  return words ?? String(error);
}
