/**
 * Reads the files that a command line names. Only regular files are read: a pipe without a writer would keep a command
 * for ever, and some devices never end.
 */
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

/** Throws the system's errors, and what `work` throws. */
export async function withRegularFile<T>(
  path: string,
  work: (file: FileHandle, bytes: number) => Promise<T>,
): Promise<T> {
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
