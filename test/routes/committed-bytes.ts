/** Figures that no change may raise, by program: JSON files beside this one, which bytes.long.test.ts writes. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

type File = "shardy-bytes" | "random-bytes" | "program-bytes";
/** What the busiest device receives, by program. */
type Bytes = ReadonlyMap<string, number>;

export const randomMoves = 300;

export function committedBytes(file: File): Bytes {
  return new Map(Object.entries(JSON.parse(readFileSync(pathOf(file), "utf8")) as Readonly<Record<string, number>>));
}

/** Those programs alone that are in `now`, each with the lower of its two figures. */
export function commitLower(file: File, now: Bytes): void {
  const before = committedBytes(file);
  const lower = [...now].map(([name, bytes]) => [name, Math.min(bytes, before.get(name) ?? bytes)]);
  writeFileSync(pathOf(file), `${JSON.stringify(Object.fromEntries(lower), null, 2)}\n`);
}

/** A line for each program that receives more than is committed. */
export function risen(now: Bytes, committed: Bytes): readonly string[] {
  return [...now].flatMap(([name, bytes]) => {
    const most = committed.get(name);
    return most === undefined || bytes <= most ? [] : [`${name}: ${most} -> ${bytes}`];
  });
}

function pathOf(file: File): string {
  return path.join(import.meta.dirname, `${file}.json`);
}
