/**
 * Zip archives: the directory at the end of a file, with zip64. An entry is a part of the file that is read when it is
 * asked for, as it is stored: nothing is inflated here.
 */
import { utf8Text } from "../support/json-document.ts";
import type { ByteSource } from "./byte-source.ts";

export interface ZipEntry {
  /** In bytes, unpacked. */
  readonly size: number;
  /** 0: stored, 8: deflated. */
  readonly method: number;
  readonly isEncrypted: boolean;
  /** The bytes as they are stored. */
  readonly read: () => Uint8Array;
}

/** Says what is wrong with the file, and what a whole one has. */
export type ZipDamage = (found: string, expected?: string) => never;

const end = { signature: 0x06054b50, bytes: 22, longestComment: 0xffff } as const;
const end64 = { signature: 0x06064b50, bytes: 56 } as const;
const locator64 = { signature: 0x07064b50, bytes: 20 } as const;
const central = { signature: 0x02014b50, bytes: 46 } as const;
const local = { signature: 0x04034b50, bytes: 30 } as const;

/** Of these two values, a zip64 field has the number. */
const beyond = { short: 0xffff, long: 0xffffffff } as const;

/** A directory of a million entries. No model has as many tensors. */
const mostDirectoryBytes = 2 ** 27;

/** The entries by name. A file that is no whole archive is `damaged`. */
export function zipEntries(source: ByteSource, damaged: ZipDamage): ReadonlyMap<string, ZipEntry> {
  const directory = directoryOf(source, damaged);
  const view = viewOf(directory.bytes);
  const entries = new Map<string, ZipEntry>();
  let position = 0;
  for (let i = 0; i < directory.count; i++) {
    if (position + central.bytes > view.byteLength || view.getUint32(position, true) !== central.signature) {
      damaged(`no entry ${i} of ${directory.count} in its directory`);
    }
    const [nameLength, extraLength] = [view.getUint16(position + 28, true), view.getUint16(position + 30, true)];
    const nameStart = position + central.bytes;
    const next = nameStart + nameLength + extraLength + view.getUint16(position + 32, true);
    if (next > view.byteLength) damaged("the end of the file within its directory");
    const name = entryName(directory.bytes.subarray(nameStart, nameStart + nameLength));
    if (entries.has(name)) damaged(`two entries ${JSON.stringify(name)}`, "each entry once");
    entries.set(name, entryOf(source, view, position, { name, damaged }));
    position = next;
  }
  return entries;
}

/** Python writes UTF-8, other programs any code page. */
function entryName(bytes: Uint8Array): string {
  try {
    return utf8Text(bytes);
  } catch {
    return String.fromCharCode(...bytes);
  }
}

/** The number of entries, and the bytes that describe them. */
function directoryOf(source: ByteSource, damaged: ZipDamage): { readonly count: number; readonly bytes: Uint8Array } {
  const first = Math.max(0, source.size - end.bytes - end.longestComment - locator64.bytes);
  const view = viewOf(source.read(first, source.size - first));
  for (let position = view.byteLength - end.bytes; position >= 0; position--) {
    if (view.getUint32(position, true) !== end.signature) continue;
    const fields = [view.getUint16(position + 10, true), view.getUint32(position + 12, true)] as const;
    const start = view.getUint32(position + 16, true);
    const locator = position - locator64.bytes;
    const isWide =
      (fields[0] === beyond.short || fields[1] === beyond.long || start === beyond.long) &&
      locator >= 0 &&
      view.getUint32(locator, true) === locator64.signature;
    if (!isWide) return directoryAt(source, damaged, fields[0], fields[1], start);
    const wide = viewOf(source.read(wholeNumber(view, locator + 8, damaged), end64.bytes));
    if (wide.byteLength < end64.bytes || wide.getUint32(0, true) !== end64.signature) break;
    const [count, bytes, at] = [32, 40, 48].map((field) => wholeNumber(wide, field, damaged));
    return directoryAt(source, damaged, count ?? 0, bytes ?? 0, at ?? 0);
  }
  return damaged("no directory at its end");
}

function directoryAt(
  source: ByteSource,
  damaged: ZipDamage,
  count: number,
  length: number,
  start: number,
): { readonly count: number; readonly bytes: Uint8Array } {
  if (length > mostDirectoryBytes) damaged(`a directory of ${length} bytes`);
  return { count, bytes: source.read(start, length) };
}

function entryOf(
  source: ByteSource,
  view: DataView,
  position: number,
  { name, damaged }: { readonly name: string; readonly damaged: ZipDamage },
): ZipEntry {
  const { size, packed, at } = placeOf(view, position, damaged);
  const [flags, method] = [view.getUint16(position + 8, true), view.getUint16(position + 10, true)];
  if (method === 0 && packed !== size) damaged("an entry of two sizes");
  if (at + local.bytes + packed > source.size) damaged(`the end of the file within the entry ${name}`);
  return {
    size,
    method,
    isEncrypted: (flags & 1) !== 0,
    read: () => {
      const header = viewOf(source.read(at, local.bytes));
      if (header.byteLength < local.bytes || header.getUint32(0, true) !== local.signature) {
        damaged(`no entry ${name} where its directory says`);
      }
      const start = at + local.bytes + header.getUint16(26, true) + header.getUint16(28, true);
      const bytes = source.read(start, packed);
      return bytes.length === packed ? bytes : damaged(`the end of the file within the entry ${name}`);
    },
  };
}

interface EntryPlace {
  readonly size: number;
  readonly packed: number;
  /** Where its local header is. */
  readonly at: number;
}

/** Zip64 has numbers that do not fit into 32 bits in a field of its own. */
function placeOf(view: DataView, position: number, damaged: ZipDamage): EntryPlace {
  const stored = [20, 24, 42].map((field) => view.getUint32(position + field, true));
  const [packed = 0, size = 0, at = 0] = stored;
  if (!stored.includes(beyond.long)) return { size, packed, at };
  let field = position + central.bytes + view.getUint16(position + 28, true);
  const last = field + view.getUint16(position + 30, true);
  while (field + 4 <= last && view.getUint16(field, true) !== 1) field += 4 + view.getUint16(field + 2, true);
  let next = field + 4;
  const wide = (value: number): number => {
    if (value !== beyond.long) return value;
    if (next + 8 > last) damaged("an entry without its zip64 sizes");
    next += 8;
    return wholeNumber(view, next - 8, damaged);
  };
  const [wideSize, widePacked] = [wide(size), wide(packed)];
  return { size: wideSize, packed: widePacked, at: wide(at) };
}

/** A number of 8 bytes. */
function wholeNumber(view: DataView, position: number, damaged: ZipDamage): number {
  const value = Number(view.getBigUint64(position, true));
  return Number.isSafeInteger(value) ? value : damaged(`the position ${value}`);
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
