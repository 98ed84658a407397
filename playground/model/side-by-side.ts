/** Two texts side by side: rows with the lines that belong together. */
import { diffArrays } from "diff/lib/diff/array.js";

export interface SideRow {
  readonly kind: "same" | "changed" | "removed" | "added";
  /** Null where the other side has a line more. */
  readonly left: string | null;
  readonly right: string | null;
}

export function sideBySide(before: string, after: string): readonly SideRow[] {
  const rows: SideRow[] = [];
  let removed: readonly string[] = [];
  const flush = (added: readonly string[]): void => {
    for (let i = 0; i < Math.max(removed.length, added.length); i++) {
      const [left = null, right = null] = [removed[i], added[i]];
      rows.push({ kind: left === null ? "added" : right === null ? "removed" : "changed", left, right });
    }
    removed = [];
  };
  for (const part of diffArrays(before.split("\n"), after.split("\n"))) {
    if (part.removed) removed = part.value;
    else if (part.added) flush(part.value);
    else {
      flush([]);
      for (const line of part.value) rows.push({ kind: "same", left: line, right: line });
    }
  }
  flush([]);
  return rows;
}

/** A run of rows, or a run of the same rows that is left out. */
export type Hunk =
  { readonly kind: "rows"; readonly rows: readonly SideRow[] } | { readonly kind: "hidden"; readonly count: number };

/** Leaves out rows without a change, further than `context` rows from one. */
export function hunks(rows: readonly SideRow[], context: number): readonly Hunk[] {
  const near = rows.map(() => false);
  rows.forEach(({ kind }, i) => {
    if (kind === "same") return;
    near.fill(true, Math.max(0, i - context), i + context + 1);
  });
  const result: Hunk[] = [];
  for (let i = 0; i < rows.length;) {
    const shown = near[i] === true;
    let end = i;
    while (end < rows.length && near[end] === shown) end++;
    result.push(shown ? { kind: "rows", rows: rows.slice(i, end) } : { kind: "hidden", count: end - i });
    i = end;
  }
  return result;
}
