/**
 * Reads the files that a command line names. Only regular files are read: a pipe without a writer would keep a command
 * for ever, and some devices never end.
 */
import { closeSync, constants, openSync, readSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

/** Throws the system's errors, and what `work` throws. */
async function withRegularFile<T>(path: string, work: (file: FileHandle, bytes: number) => Promise<T>): Promise<T> {
  // Opening a pipe would wait for its writer. Windows has neither the flag nor such pipes.
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new Error(`EINVAL: ${found.isDirectory() ? "a folder" : "a pipe or a device"}, open`);
    return await work(file, found.size);
  } finally {
    await file.close();
  }
}

/** Throws the system's errors. */
export function readRegularFile(path: string): Promise<Buffer> {
  return withRegularFile(path, (file) => file.readFile());
}

/** Throws the system's errors. */
export async function readRegularText(path: string): Promise<string> {
  return (await readRegularFile(path)).toString("utf8");
}

export interface FileSource {
  readonly size: number;
  /** Gives fewer bytes at the end of the file. */
  readonly read: (start: number, length: number) => Uint8Array;
  readonly readInto: (into: Uint8Array, start: number) => void;
}

/** A file that is read in parts, and opened for each. Throws the system's errors, `read` too. */
export async function regularSource(path: string): Promise<FileSource> {
  const size = await withRegularFile(path, (_, bytes) => Promise.resolve(bytes));
  const readInto = (into: Uint8Array, start: number): void => {
    const file = openSync(path, "r");
    try {
      for (let done = 0; done < into.length;) {
        const count = readSync(file, into, done, Math.min(into.length - done, mostAtOnce), start + done);
        if (count === 0) throw new Error("EIO: the file became shorter while it was read");
        done += count;
      }
    } finally {
      closeSync(file);
    }
  };
  const read = (start: number, length: number): Uint8Array => {
    const into = new Uint8Array(Math.max(0, Math.min(length, size - start)));
    readInto(into, start);
    return into;
  };
  return { size, read, readInto };
}

/** Node reads at most 2 GiB at once. */
const mostAtOnce = 2 ** 30;
