/**
 * How ranks of one host find rank 0 without BRAID_TOKEN. Rank 0 writes its port and token into a file named after the
 * launcher's job, which only this user can read, and removes it when all ranks have joined. A user who can read the
 * file could debug the process anyway, so nothing leaks.
 */
import { createHash } from "node:crypto";
import { lstat, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import path from "node:path";
import { newToken } from "./handshake.ts";

interface HubAddress {
  readonly port: number;
  readonly token: string;
}

export function tokenFile(job: string): string {
  const name = createHash("sha256").update(job).digest("hex").slice(0, 24);
  return path.join(tmpdir(), `braid-${userInfo().uid}-${name}`);
}

/** Atomically replaces an older file of the same name. */
export async function writeTokenFile(file: string, { port, token }: HubAddress): Promise<void> {
  const draft = `${file}.${newToken().slice(0, 16)}`;
  await writeFile(draft, JSON.stringify({ port, token }), { mode: 0o600, flag: "wx" });
  await rename(draft, file);
}

export async function removeTokenFile(file: string): Promise<void> {
  await rm(file, { force: true });
}

/** Null if there is no file, or if it belongs to another user or is readable by others. */
export async function readTokenFile(file: string): Promise<HubAddress | null> {
  try {
    const status = await lstat(file);
    if (!status.isFile() || status.uid !== userInfo().uid || (status.mode & 0o077) !== 0) return null;
    const value: unknown = JSON.parse(await readFile(file, "utf8"));
    if (typeof value !== "object" || value === null || !("port" in value) || !("token" in value)) return null;
    const { port, token } = value;
    return typeof port === "number" && typeof token === "string" ? { port, token } : null;
  } catch {
    return null;
  }
}
