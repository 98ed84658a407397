/**
 * Lives in rows; the lives of one row do not overlap. From either end of the list, the left-edge algorithm makes as few
 * rows as possible (Hashimoto and Stevens, 1971). In another order, each life takes the lowest row that is free for it.
 *
 *   a: |----|      row 0: a c
 *   b:    |-----|  row 1: b
 *   c:        |--|
 */
import { at } from "../../../support/invariant.ts";

export interface Span {
  readonly from: number;
  readonly to: number;
}

/** The indices of the spans of each row. */
export type Rows = readonly (readonly number[])[];

/** `spans` are in order of `from`. Of the free rows, a span takes the one that became free last. */
export function rowsFromStart(spans: readonly Span[]): Rows {
  const byEnd = [...spans.keys()].sort((a, b) => compare(at(spans, a).to, at(spans, b).to));
  const rows: number[][] = [];
  const rowOf: number[] = [];
  const free: number[] = [];
  let ended = 0;
  for (const [i, { from }] of spans.entries()) {
    for (let span = byEnd[ended]; span !== undefined && at(spans, span).to < from; span = byEnd[++ended]) {
      free.push(at(rowOf, span));
    }
    const row = free.pop() ?? rows.push([]) - 1;
    at(rows, row).push(i);
    rowOf.push(row);
  }
  return rows;
}

/** The same in reverse, from the last end to the first start. Where lives overlap unevenly, the rows differ. */
export function rowsFromEnd(spans: readonly Span[]): Rows {
  const order = [...spans.keys()].sort((a, b) => compare(at(spans, b).to, at(spans, a).to));
  const mirrored = order.map((i): Span => ({ from: -at(spans, i).to, to: -at(spans, i).from }));
  return rowsFromStart(mirrored).map((row) => row.map((position) => at(order, position)));
}

/**
 * Each span, in order of `order`, in the lowest row that is free over all of it. `lasts[i]` is the last span that
 * starts before span i ends. Time and memory grow with the number of spans that live at each start.
 */
export function rowsInOrder(order: readonly number[], lasts: readonly number[]): Rows {
  const rows: number[][] = [];
  // Bit r of taken[block][i]: row 32 * block + r is taken where span i starts.
  const taken: Int32Array[] = [];
  for (const i of order) {
    for (let block = 0; ; block++) {
      const here = (taken[block] ??= new Int32Array(lasts.length));
      let union = 0;
      for (let start = i; start <= at(lasts, i); start++) union |= at(here, start);
      if (union === -1) continue;
      const bit = ~union & (union + 1);
      for (let start = i; start <= at(lasts, i); start++) here[start] = at(here, start) | bit;
      (rows[32 * block + 31 - Math.clz32(bit)] ??= []).push(i);
      break;
    }
  }
  return rows;
}

/** Also for infinities, whose difference is NaN. */
function compare(a: number, b: number): number {
  return a === b ? 0 : a - b;
}
