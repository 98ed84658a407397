/**
 * The numbers of coalesced groups in dumps before 2025-06, which print none at EndCoalescing. A Wait still names the
 * number. A number that no communication has belongs to the group that ended before the Wait.
 */
import { failAt } from "../text/source.ts";
import type { Source } from "../text/source.ts";

const mention =
  /\b(?<verb>Wait\b[ (]*)?(?<kind>P2PCommunication|Communication|EndCoalescing)\b(?: (?<number>\d{1,15})\b)?/gu;

/** The number for each EndCoalescing without one, by the position after the word. */
export function numberGroups(source: Source): ReadonlyMap<number, number> {
  const numbers = new Map<number, number>();
  const posted = new Set<number>();
  const unnumbered: number[] = [];
  const awaited: { readonly number: number; readonly position: number }[] = [];
  for (const match of source.text.matchAll(mention)) {
    const { verb, kind, number } = match.groups ?? {};
    const position = match.index + match[0].length;
    if (number === undefined) {
      if (verb === undefined && kind === "EndCoalescing") unnumbered.push(position);
    } else if (verb === undefined) posted.add(Number(number));
    else awaited.push({ number: Number(number), position });
  }
  let next = 0;
  for (const number of posted) next = Math.max(next, number + 1);
  for (const { number, position } of awaited) {
    next = Math.max(next, number + 1);
    if (posted.has(number)) continue;
    const ended = unnumbered.filter((end) => end < position && !numbers.has(end));
    const [end] = ended;
    if (end === undefined) continue;
    if (ended.length > 1) failAmbiguous(source, position, number);
    numbers.set(end, number);
    posted.add(number);
  }
  for (const end of unnumbered) {
    if (!numbers.has(end)) numbers.set(end, next++);
  }
  return numbers;
}

function failAmbiguous(source: Source, position: number, number: number): never {
  failAt(source, position - String(number).length, {
    code: "dump-incomplete",
    message: `the dump does not say which coalesced group has the number ${number}`,
    expected: "numbers after EndCoalescing, as nvFuser prints since 2025-06",
    help: `write ${number} after the EndCoalescing that this Wait is for`,
  });
}
