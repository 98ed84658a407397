/** Times, bytes and shares as texts of three to four digits. */

/** `812.0 us`, `1.25 ms`, `140 ms`. */
export function timeText(milliseconds: number): string {
  const size = Math.abs(milliseconds);
  if (size >= 100) return `${milliseconds.toFixed(0)} ms`;
  return size >= 1 ? `${milliseconds.toFixed(2)} ms` : `${(1000 * milliseconds).toFixed(1)} us`;
}

/** `6.6 %` for 0.066. */
export function percentText(part: number): string {
  return `${(100 * part).toFixed(1)} %`;
}

/** `2.1 MB`: powers of 1000. */
export function bytesText(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = count < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(count) / 3));
  return `${(count / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power] ?? ""}`;
}
