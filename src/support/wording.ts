/**
 * The wording of messages: plurals, articles, and control characters as text. Names, messages and headers come from
 * programs and data files: on a terminal, their control characters would move the cursor, hide text or rename the
 * window, and marks of direction would reorder it.
 */

/** `1 send`, `2 sends`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** `an Allgather`, `a Reduce`: chosen by the first letter. */
export function withArticle(noun: string): string {
  return `${/^[aeio]/i.test(noun) ? "an" : "a"} ${noun}`;
}

/** Control characters and marks of direction as `\u001b`, which JSON reads back; line ends and tabs stay. */
export function escapeControls(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, asText);
}

/** Those of a text that has to stay on one line: line ends and tabs, too. */
export function escapeLine(text: string): string {
  return escapeControls(text).replaceAll(/[\n\t]/gu, asText);
}

function asText(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

// Times, bytes and shares as texts of three to four digits.

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

// Finds the known name that a misspelled name most likely means.

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

/** The operating system's message for a failed call: `no such file or directory`. */
export function systemReason(error: unknown): string {
  const [, words] = error instanceof Error ? (/^[A-Z]+: ([^,]+)/.exec(error.message) ?? []) : [];
  return words ?? String(error);
}

/** The reason of a choice of a schedule, and what its predictions assume, in lines. */
export function reasonText({
  reason,
  assumptions,
}: {
  readonly reason: string;
  readonly assumptions: readonly string[];
}): string {
  return [reason, ...assumptions.map((text) => `assumed: ${text}`)].join("\n");
}
