/** Times, bytes and shares as people read them. */

export function time(milliseconds: number): string {
  const size = Math.abs(milliseconds);
  if (size >= 100) return `${milliseconds.toFixed(0)} ms`;
  return size >= 1 ? `${milliseconds.toFixed(2)} ms` : `${(1000 * milliseconds).toFixed(1)} µs`;
}

export function percent(part: number): string {
  return `${(100 * part).toFixed(0)} %`;
}

export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = count < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(count) / 3));
  return `${(count / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power] ?? ""}`;
}
