/**
 * Places the buffers of a group of lives. They are stacked in some order, each on the highest buffer below it that it
 * overlaps in time. The stack of a fixed order never grows when a buffer shrinks, and some order gives the best
 * placement. The orders that are tried depend only on lives, so the lowest of their stacks never grows either. First
 * fit, and greedy by size (Pisarchyk and Lee, 2020), lack this property: a smaller buffer can leave a gap too small for
 * the next.
 *
 *   a: |----|        4 KiB   rows a d | b c
 *   b:   |-----|     2 KiB   a at 0, d at 0, b at 4, c at 1 (on d; b has ended)
 *   c:          |--| 1 KiB
 *   d:       |-----| 1 KiB
 */
import { at, countWhile } from "../../../support/invariant.ts";
import { createRandom } from "../../../support/random.ts";

export interface Stack {
  readonly offsets: readonly number[];
  readonly bytes: number;
}

/**
 * Bounds of the search that keep the time per buffer about constant: rounds of four stacks, puts on them, and spans in
 * `rowsInOrder`.
 */
const mostRounds = 10;
const mostClassRounds = 64;
/** From here on, repeats lie alike even if another order would be a little lower. */
const manyLives = 256;
const mostPuts = 65_536;
const mostOverlaps = 65_536;

/**
 * `lives` are in order of `from`, `sizes` in bytes. Lives of one class are the same buffer of several layers, or of
 * other repeats. The search ends early if a stack is as high as the largest number of bytes alive at once, since no
 * placement is lower.
 */
export function stackLives(lives: readonly Span[], sizes: readonly number[], classes: readonly number[]): Stack {
  const lasts = lastOverlaps(lives);
  const least = mostAtOnce(lasts, sizes);
  let best: Stack | null = null;
  for (const order of ordersOf(lives, lasts, classes)) {
    best = lowerStack(order, lasts, sizes, best);
    if (best.bytes === least) break;
  }
  return best ?? { offsets: [], bytes: 0 };
}

/** The stack of the lives in this order, or `best` if that is no higher. */
function lowerStack(
  order: readonly number[],
  lasts: readonly number[],
  sizes: readonly number[],
  best: Stack | null,
): Stack {
  const skyline = createSkyline(sizes.length);
  const offsets = sizes.map(() => 0);
  let bytes = 0;
  for (const i of order) {
    const size = at(sizes, i);
    const offset = skyline.put(i, at(lasts, i), size);
    offsets[i] = offset;
    bytes = Math.max(bytes, offset + size);
    if (best !== null && bytes >= best.bytes) return best;
  }
  return { offsets, bytes };
}

/** Orders of stacking. They must not depend on sizes. */
function* ordersOf(
  lives: readonly Span[],
  lasts: readonly number[],
  classes: readonly number[],
): Generator<readonly number[]> {
  const fromStart = rowsFromStart(lives);
  yield fromStart.flat();
  const fromEnd = rowsFromEnd(lives);
  yield fromEnd.flat();
  // The longest life goes to the bottom: on top of short ones it would block the gaps between them. In rows, others of
  // about its length lie beside it; many lives take too long for that.
  const lengths = lasts.map((last, i) => last - i + 1);
  const mayRow = lives.length * fromStart.length <= mostOverlaps;
  yield byLength(lengths);
  if (mayRow) yield rowsInOrder(byLength(lengths), lasts).flat();
  const isRepeated = new Set(classes).size < classes.length;
  if (isRepeated) yield* ordersOfClasses(lasts, classes);
  if (isRepeated && lives.length >= manyLives) return;
  const random = createRandom(1);
  const shuffled = (rows: Rows): readonly number[] => {
    const places = rows.map((row) => ({ row, place: random.uint32() }));
    return places.sort((a, b) => a.place - b.place).flatMap(({ row }) => row);
  };
  const rounds = Math.min(mostRounds, Math.floor(mostPuts / (4 * lives.length)));
  for (let round = 0; round < rounds; round++) {
    yield shuffled(fromStart);
    yield shuffled(fromEnd);
    const spread = 1 + (round % 4);
    const order = byLength(lengths.map((length) => length * 2 ** (random.float() * spread)));
    yield order;
    if (mayRow) yield rowsInOrder(order, lasts).flat();
  }
}

function byLength(lengths: readonly number[]): readonly number[] {
  return [...lengths.keys()].sort((a, b) => at(lengths, b) - at(lengths, a));
}

/**
 * Orders in which each class is stacked as a whole. What is repeated then lies alike in every repeat, at equal
 * distances, and a schedule finds the same order of memory in each. There are few such orders, so that some are tried
 * in the same time: 40 layers of Llama-3 8B on 8 ranks by NCCL need 138 MB in the forward pass, 151 in the best of the
 * other orders, and 11.04 or 11.06 GB with gradients.
 */
function* ordersOfClasses(lasts: readonly number[], classes: readonly number[]): Generator<readonly number[]> {
  const lengths = lasts.map((last, i) => last - i + 1);
  const longest = new Map<number, number>();
  for (const [i, own] of classes.entries()) longest.set(own, Math.max(longest.get(own) ?? 0, at(lengths, i)));
  // Rows are for repeats that few others overlap. Where each leaves saved tensors, they would not lie alike.
  const saved = lengths.filter((length) => length > 2 * longest.size).length;
  const mayRow = 50 * saved <= lengths.length;
  const random = createRandom(1);
  const rounds = Math.max(4, Math.min(mostClassRounds, Math.floor(mostPuts / lasts.length)));
  for (let round = 0; round < rounds; round++) {
    const spread = round === 0 ? 0 : 4 * (1 + (round % 5));
    const keys = new Map([...longest].map(([own, length]) => [own, length * 2 ** (random.float() * spread)]));
    const keyOf = (i: number): number => keys.get(at(classes, i)) ?? 0;
    const order = [...lasts.keys()].sort((a, b) => keyOf(b) - keyOf(a) || at(lengths, b) - at(lengths, a));
    yield order;
    if (mayRow) yield rowsInOrder(order, lasts).flat();
  }
}

/** For each life the last one that starts before its end. It overlaps all lives that start in between. */
function lastOverlaps(lives: readonly Span[]): readonly number[] {
  const starts = Float64Array.from(lives, ({ from }) => from);
  return lives.map(({ to }, i) => Math.max(i, countWhile(starts, (from) => from < to) - 1));
}

/** The largest number of bytes alive at once. It is reached at the start of some life. */
function mostAtOnce(lasts: readonly number[], sizes: readonly number[]): number {
  const ending = new Float64Array(sizes.length + 1);
  let [now, most] = [0, 0];
  for (const [i, size] of sizes.entries()) {
    now += size - at(ending, i);
    most = Math.max(most, now);
    const end = at(lasts, i) + 1;
    ending[end] = at(ending, end) + size;
  }
  return most;
}

/**
 * The height of a stack at each of `length` positions. A block that is put on a range of positions is level, on the
 * highest point of the range. A segment tree makes a put take O(log length), however long the range is.
 *
 *   put(0, 1, 3) = 0, put(1, 2, 2) = 3 (on the first), put(0, 0, 1) = 3
 */
interface Skyline {
  /**
   * Puts a block of height `size` on positions `first` to `last`, both included; returns the height of its lower edge.
   */
  readonly put: (first: number, last: number, size: number) => number;
}

function createSkyline(length: number): Skyline {
  // For node i: the highest point below it, and a height that all positions below it reach.
  const highest = new Float64Array(2 * length);
  const floor = new Float64Array(2 * length);
  const heightOver = (first: number, last: number): number => {
    let height = 0;
    for (let [low, high] = [first + length, last + length + 1]; low < high; low >>= 1, high >>= 1) {
      if (low % 2 === 1) height = Math.max(height, at(highest, low++));
      if (high % 2 === 1) height = Math.max(height, at(highest, --high));
    }
    for (let node = first + length; node > 0; node >>= 1) height = Math.max(height, at(floor, node));
    for (let node = last + length; node > 0; node >>= 1) height = Math.max(height, at(floor, node));
    return height;
  };
  const raise = (first: number, last: number, height: number): void => {
    // A block on a range is higher than everything below it.
    const raiseNode = (node: number): void => {
      highest[node] = height;
      floor[node] = height;
    };
    for (let [low, high] = [first + length, last + length + 1]; low < high; low >>= 1, high >>= 1) {
      if (low % 2 === 1) raiseNode(low++);
      if (high % 2 === 1) raiseNode(--high);
    }
    for (const end of [first + length, last + length]) {
      for (let node = end >> 1; node > 0; node >>= 1) highest[node] = Math.max(at(highest, node), height);
    }
  };
  return {
    put: (first, last, size) => {
      const height = heightOver(first, last);
      if (size > 0) raise(first, last, height + size);
      return height;
    },
  };
}

// Lives in rows; the lives of one row do not overlap. From either end of the list, the left-edge algorithm makes as few
// rows as possible (Hashimoto and Stevens, 1971). In another order, each life takes the lowest row that is free for it.
//
//   a: |----|      row 0: a c
//   b:    |-----|  row 1: b
//   c:        |--|

interface Span {
  readonly from: number;
  readonly to: number;
}

/** The indices of the spans of each row. */
type Rows = readonly (readonly number[])[];

/** `spans` are in order of `from`. Of the free rows, a span takes the one that became free last. */
function rowsFromStart(spans: readonly Span[]): Rows {
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
function rowsFromEnd(spans: readonly Span[]): Rows {
  const order = [...spans.keys()].sort((a, b) => compare(at(spans, b).to, at(spans, a).to));
  const mirrored = order.map((i): Span => ({ from: -at(spans, i).to, to: -at(spans, i).from }));
  return rowsFromStart(mirrored).map((row) => row.map((position) => at(order, position)));
}

/**
 * Each span, in order of `order`, in the lowest row that is free over all of it. `lasts[i]` is the last span that
 * starts before span i ends. Time and memory grow with the number of spans that live at each start.
 */
function rowsInOrder(order: readonly number[], lasts: readonly number[]): Rows {
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
