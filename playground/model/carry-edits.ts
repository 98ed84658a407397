/** Carries an edited host program over to the one that other sizes or options print. */
import { diffArrays } from "diff/lib/diff/array.js";
import type { HostText } from "../compiler/parts.ts";
import type { Change, State } from "./state.ts";

/** An edited host program, and what it was made from. */
export interface Edit {
  readonly rank: number;
  readonly printed: string;
  readonly text: string;
}

/** The edits that a change would drop, though the program after it may have the same statements. */
export function editsToCarry({ edits }: State, change: Change, hosts: readonly HostText[]): readonly Edit[] {
  if (!["text", "option", "param", "ownSizes"].includes(change.kind)) return [];
  return Object.entries(edits).flatMap(([key, text]) => {
    const rank = Number(key);
    const host = hosts.find(({ ranks }) => ranks.includes(rank));
    return host === undefined ? [] : [{ rank, printed: host.printed, text }];
  });
}

/** The same edits of `hosts`; null if one of them does not fit. */
export function carriedEdits(edits: readonly Edit[], hosts: readonly HostText[]): State["edits"] | null {
  const carried: Record<string, string> = {};
  for (const { rank, printed, text } of edits) {
    const next = hosts.find(({ ranks }) => ranks.includes(rank));
    const own = next === undefined ? null : carriedEdit(printed, text, next.printed);
    if (own === null) return null;
    carried[String(rank)] = own;
  }
  return carried;
}

/**
 * `edited` was made from `printed`. Returns the same edit of `next`, or null where `next` has other statements. A line
 * that the user moved is taken from `next`; a line that the user wrote stays as it is.
 */
function carriedEdit(printed: string, edited: string, next: string): string | null {
  const [before, after] = [printed.split("\n"), next.split("\n")];
  if (before.length !== after.length || before.some((line, i) => shapeOf(line) !== shapeOf(after[i] ?? "")))
    return null;
  const lineOf = new Map(before.map((line, i) => [line, after[i] ?? line]));
  const carried: string[] = [];
  let position = 0;
  for (const { added, removed, value } of diffArrays(before, edited.split("\n"))) {
    if (added) carried.push(...value.map((line) => lineOf.get(line) ?? line));
    else {
      if (!removed) carried.push(...after.slice(position, position + value.length));
      position += value.length;
    }
  }
  return carried.join("\n");
}

/** A line without its numbers: sizes, and lists of devices of any length. */
function shapeOf(line: string): string {
  return line.replaceAll(/\d+(?:,? \d+)*/gu, "#");
}
