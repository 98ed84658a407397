/** Finds the known name that a misspelled name most likely means. */

/**
 * The known name with the fewest edits, up to a third of the name's length (at least 1) and fewer than its letters, or
 * undefined. Case is ignored.
 */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const limit = Math.min(Math.max(1, Math.floor(name.length / 3)), name.length - 1);
  let best: string | undefined;
  let bestDistance = limit + 1;
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** `did you mean X?`, or `otherwise` if no known name is near. */
export function suggestion(name: string, known: readonly string[], otherwise: string): string {
  const candidate = nearest(name, known);
  return candidate === undefined ? otherwise : `did you mean ${candidate}?`;
}

/** Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours. */
export function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      const replace = (last[j - 1] ?? 0) + (same ? 0 : 1);
      const swap = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (before[j - 2] ?? Infinity) + 1 : Infinity;
      row.push(Math.min(replace, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, swap));
    }
    before = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
