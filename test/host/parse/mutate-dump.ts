/** Damages dumps as editors, terminals and merges do. Seeded: the same numbers give the same text. */
import { createRandom, type Random } from "../../../src/support/random.ts";

type Mutation = (text: string, random: Random, others: readonly string[]) => string;

function range(text: string, random: Random, most: number): readonly [start: number, end: number] {
  const start = random.integer(text.length + 1);
  return [start, Math.min(text.length, start + random.integer(most))];
}

const signs = Array.from(" \n\t()[]{}<>=,:;%+-*/_.\"'0123456789TSirbx\r\u0000\u00e9\u{1F600}");

/** Words of dumps, at places where they may not belong. */
const words = [
  "FOR ",
  "IF Manual ",
  "ELSE:",
  "T0_g_float[iS0{i0}]",
  "( i0 * i2 )",
  "streamIdx",
  "Stream 7",
  "Wait Communication 1",
  "EndCoalescing",
  "StartCoalescing",
  "ceilDiv(",
  "99999999999999999999",
  "-1",
  "} // %HostIrContainer",
  "%HostIrContainer { (",
  "HostUnit0: Inputs={",
  "Index definitions:\n  i84 = i84 + i84;\n",
  "TransformPrinter :\n",
  "DeviceMesh{0 0}",
  "root=9, ",
];

function pick<T>(items: readonly T[], random: Random): T {
  const item = items[random.integer(items.length)];
  if (item === undefined) throw new Error("nothing to pick from");
  return item;
}

const mutations: readonly Mutation[] = [
  // Replaces, removes or inserts a character.
  (text, random) => {
    const at = random.integer(text.length + 1);
    return text.slice(0, at) + pick(signs, random) + text.slice(at + random.integer(2));
  },
  // Removes a range.
  (text, random) => {
    const [start, end] = range(text, random, 200);
    return text.slice(0, start) + text.slice(end);
  },
  // Duplicates a range.
  (text, random) => {
    const [start, end] = range(text, random, 400);
    return text.slice(0, end) + text.slice(start);
  },
  // Moves a range elsewhere.
  (text, random) => {
    const [start, end] = range(text, random, 200);
    const rest = text.slice(0, start) + text.slice(end);
    const to = random.integer(rest.length + 1);
    return rest.slice(0, to) + text.slice(start, end) + rest.slice(to);
  },
  // Removes a line, or copies it elsewhere.
  (text, random) => {
    const lines = text.split("\n");
    const [line = ""] = lines.splice(random.integer(lines.length), 1);
    if (random.integer(2) === 0) lines.splice(random.integer(lines.length + 1), 0, line, line);
    return lines.join("\n");
  },
  // Changes a line's indentation.
  (text, random) => {
    const lines = text.split("\n");
    const at = random.integer(lines.length);
    const line = lines[at] ?? "";
    lines[at] = random.integer(2) === 0 ? `  ${line}` : line.replace(/^ {1,2}/u, "");
    return lines.join("\n");
  },
  // Changes a number.
  (text, random) => {
    const numbers = [...text.matchAll(/\d+/gu)];
    if (numbers.length === 0) return text;
    const { index, 0: digits } = pick(numbers, random);
    const value = pick(["0", "1", "7", "8", "13", "65535", "65536", "4294967296", digits + digits], random);
    return text.slice(0, index) + value + text.slice(index + digits.length);
  },
  // Inserts a word where it may not belong.
  (text, random) => {
    const at = random.integer(text.length + 1);
    return text.slice(0, at) + pick(words, random) + text.slice(at);
  },
  // Cuts off the end.
  (text, random) => text.slice(0, random.integer(text.length + 1)),
  // Appends the end of another dump.
  (text, random, others) => {
    const other = pick(others, random);
    return text.slice(0, random.integer(text.length + 1)) + other.slice(random.integer(other.length + 1));
  },
];

/** One of `dumps`, damaged once, or now and then up to four times. */
export function mutatedDump(seed: number, dumps: readonly string[]): string {
  const random = createRandom(seed);
  let text = pick(dumps, random);
  for (let count = random.integer(3) === 0 ? 1 + random.integer(4) : 1; count > 0; count--)
    text = pick(mutations, random)(text, random, dumps);
  return text;
}
