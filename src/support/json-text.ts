/** JSON of a value that a user gave, for a message: at most 80 characters. */
export function jsonText(value: unknown): string {
  try {
    const text: unknown = JSON.stringify(value);
    return String(text).slice(0, 80);
  } catch {
    // The parser of JSON takes any depth, its printer does not.
    return "a value that is nested too deeply to print";
  }
}
