/**
 * Sorts a row on the CPU: by digits of 11 bits from the lowest, which keeps equal elements in their order. Elements
 * become words whose order without sign is that of the elements: NaN is the largest, and -0 equals 0. A descending
 * order has the words' complements. Short rows are merged from runs that are sorted by insertion.
 *
 * The memory from `first` on, in words: the elements, then two lists of positions, then counts of digits.
 */
import type { ScalarType } from "../../numerics/scalar/expression.ts";

const digitBits = 11;
const digits = 1 << digitBits;
/** Rows up to here are merged: counting digits takes longer. */
const shortRow = 384;
const shortRun = 12;

function wordsOf(type: ScalarType): number {
  return type === "f64" || type === "i64" ? 2 : 1;
}

/** Bytes that `sortRow` uses for `count` elements. */
export function sortRowBytes(count: number, type: ScalarType): number {
  return 4 * (count * (wordsOf(type) + 2) + digits);
}

/** Writes the positions of the sorted elements as int64, whose low words are at `to` and every `step` words after it. */
export function sortRow(
  words: Uint32Array,
  first: number,
  count: number,
  type: ScalarType,
  descending: boolean,
  to: number,
  step: number,
): void {
  const size = wordsOf(type);
  const isFloat = type === "f32" || type === "f64";
  const flip = descending ? 0xffffffff : 0;
  // Little-endian: the last word of an element has the sign.
  for (let i = first + size - 1, end = first + count * size; i < end; i += size) {
    const word = words[i] ?? 0;
    const low = size === 1 ? 0 : (words[i - 1] ?? 0);
    let [high, rest] = [word ^ 0x80000000, low];
    if (isFloat) {
      const magnitude = word & 0x7fffffff;
      const infinity = size === 1 ? 0x7f800000 : 0x7ff00000;
      if (magnitude > infinity || (magnitude === infinity && low !== 0)) [high, rest] = [-1, -1];
      else if (magnitude !== 0 || low !== 0) [high, rest] = word >>> 31 === 0 ? [high, low] : [~word, ~low];
      else high = 0x80000000;
    }
    words[i] = high ^ flip;
    if (size === 2) words[i - 1] = rest ^ flip;
  }
  const from = first + count * size;
  for (let i = 0; i < count; i++) words[from + i] = i;
  const sorted =
    count <= shortRow ? byMerging(words, first, count, size, from) : byDigits(words, first, count, size, from);
  for (let i = 0; i < count; i++) {
    words[to + i * step] = words[sorted + i] ?? 0;
    words[to + i * step + 1] = 0;
  }
}

// All return where the sorted positions begin.

/** Runs of a few elements by insertion, then merged: `from` and the list after it take turns. */
function byMerging(words: Uint32Array, first: number, count: number, size: number, from: number): number {
  for (let start = 0; start < count; start += shortRun)
    insert(words, first, start, Math.min(count, start + shortRun), size, from);
  let [source, target] = [from, from + count];
  for (let run = shortRun; run < count; run *= 2) {
    for (let start = 0; start < count; start += 2 * run) {
      const middle = source + Math.min(count, start + run);
      const end = source + Math.min(count, start + 2 * run);
      let [left, right, to] = [source + start, middle, target + start];
      while (left < middle && right < end) {
        const [a, b] = [words[left] ?? 0, words[right] ?? 0];
        const isLeft = compareAt(words, first, size, a, b) <= 0;
        words[to++] = isLeft ? a : b;
        if (isLeft) left++;
        else right++;
      }
      while (left < middle) words[to++] = words[left++] ?? 0;
      while (right < end) words[to++] = words[right++] ?? 0;
    }
    [source, target] = [target, source];
  }
  return source;
}

function compareAt(words: Uint32Array, first: number, size: number, a: number, b: number): number {
  const high = (words[first + a * size + size - 1] ?? 0) - (words[first + b * size + size - 1] ?? 0);
  return high !== 0 || size === 1 ? high : (words[first + a * 2] ?? 0) - (words[first + b * 2] ?? 0);
}

function insert(words: Uint32Array, first: number, start: number, end: number, size: number, from: number): void {
  for (let i = start + 1; i < end; i++) {
    let place = from + i;
    for (; place > from + start; place--) {
      const other = words[place - 1] ?? 0;
      if (compareAt(words, first, size, other, i) <= 0) break;
      words[place] = other;
    }
    words[place] = i;
  }
}

function byDigits(words: Uint32Array, first: number, count: number, size: number, from: number): number {
  const counts = from + 2 * count;
  let [source, target] = [from, from + count];
  for (let word = 0; word < size; word++) {
    for (let shift = 0; shift < 32; shift += digitBits) {
      words.fill(0, counts, counts + digits);
      const mask = digits - 1;
      for (let i = first + word, end = first + count * size; i < end; i += size) {
        const place = counts + (((words[i] ?? 0) >>> shift) & mask);
        words[place] = (words[place] ?? 0) + 1;
      }
      // All elements have one digit.
      if (words[counts + (((words[first + word] ?? 0) >>> shift) & mask)] === count) continue;
      for (let digit = 0, before = 0; digit < digits; digit++) {
        const own = words[counts + digit] ?? 0;
        words[counts + digit] = before;
        before += own;
      }
      for (let i = 0; i < count; i++) {
        const position = words[source + i] ?? 0;
        const place = counts + (((words[first + word + position * size] ?? 0) >>> shift) & mask);
        const next = words[place] ?? 0;
        words[place] = next + 1;
        words[target + next] = position;
      }
      [source, target] = [target, source];
    }
  }
  return source;
}
