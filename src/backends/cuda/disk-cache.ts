/** Files that later processes find again. A cache that cannot be read or written costs time but never fails a run. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";

/** Null if there is no such file. */
export function readCached(file: string): Uint8Array | null {
  try {
    return new Uint8Array(readFileSync(file));
  } catch {
    return null;
  }
}

export function writeCached(file: string, bytes: Uint8Array): void {
  try {
    mkdirSync(path.dirname(file), { recursive: true });
    // Other ranks write the same file. A rename shows it whole or not at all.
    const unfinished = `${file}.${process.pid}`;
    writeFileSync(unfinished, bytes);
    renameSync(unfinished, file);
  } catch {
    // The run goes on without a cache.
  }
}
