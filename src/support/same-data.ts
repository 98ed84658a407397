/** Whether two values of plain objects, arrays and primitives are equal. Fields that are undefined count as absent. */
export function sameData(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((each, i) => sameData(each, b[i]));
  }
  const [own, others] = [new Map<string, unknown>(Object.entries(a)), new Map<string, unknown>(Object.entries(b))];
  return [...new Set([...own.keys(), ...others.keys()])].every((key) => sameData(own.get(key), others.get(key)));
}
