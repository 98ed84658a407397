/**
 * The zip archive of torch.export.save. PyTorch stores entries uncompressed, so an entry is a view of the file's bytes:
 * nothing is inflated, and a small file cannot grow. Reads the central directory, with zip64.
 */
import { fail } from "../../diagnostics/diagnostic.ts";

export interface Archive {
  /** Of the file, for messages. */
  readonly path: string;
  /** By name, without the folder that holds all entries. */
  readonly entries: ReadonlyMap<string, Uint8Array>;
}

const end = { signature: 0x06054b50, bytes: 22, longestComment: 0xffff } as const;
const end64 = { signature: 0x06064b50, bytes: 56 } as const;
const locator64 = { signature: 0x07064b50, bytes: 20 } as const;
const central = { signature: 0x02014b50, bytes: 46 } as const;
const local = { signature: 0x04034b50, bytes: 30 } as const;

/** Of these two values, a zip64 field has the number. */
const beyond = { short: 0xffff, long: 0xffffffff } as const;

/** Whether the bytes begin as a zip archive does. */
function isZip(bytes: Uint8Array): boolean {
  return bytes.length >= 4 && viewOf(bytes).getUint32(0, true) === local.signature;
}

/** Throws `model-syntax` for what is no whole archive, and `model-unsupported` for entries in another form. */
export function openArchive(bytes: Uint8Array, path: string): Archive {
  if (!isZip(bytes)) damaged(path, "other bytes at its start", "a zip archive, as torch.export.save writes it");
  const view = viewOf(bytes);
  const { count, start } = directoryOf(view, path);
  const entries = new Map<string, Uint8Array>();
  let position = start;
  for (let i = 0; i < count; i++) {
    if (position + central.bytes > bytes.length || view.getUint32(position, true) !== central.signature) {
      damaged(path, `no entry ${i} of ${count} in its directory`);
    }
    const lengths = [28, 30, 32].map((field) => view.getUint16(position + field, true));
    const [nameLength = 0, extraLength = 0, commentLength = 0] = lengths;
    const next = position + central.bytes + nameLength + extraLength + commentLength;
    if (next > bytes.length) damaged(path, "the end of the file within its directory");
    const nameStart = position + central.bytes;
    const name = nameOf(bytes.subarray(nameStart, nameStart + nameLength), path);
    const found = entryOf(bytes, view, position, name, path);
    if (entries.has(name)) damaged(path, `two entries ${JSON.stringify(name)}`, "each entry once");
    entries.set(name, found);
    position = next;
  }
  return { path, entries: withoutFolder(entries, path) };
}

/** The number of entries, and where the directory starts. */
function directoryOf(view: DataView, path: string): { readonly count: number; readonly start: number } {
  const first = Math.max(0, view.byteLength - end.bytes - end.longestComment);
  for (let position = view.byteLength - end.bytes; position >= first; position--) {
    if (view.getUint32(position, true) !== end.signature) continue;
    const [count, start] = [view.getUint16(position + 10, true), view.getUint32(position + 16, true)];
    if (count !== beyond.short && start !== beyond.long) return { count, start };
    const locator = position - locator64.bytes;
    if (locator < 0 || view.getUint32(locator, true) !== locator64.signature) return { count, start };
    const wide = wholeNumber(view, locator + 8, path);
    if (wide + end64.bytes > view.byteLength || view.getUint32(wide, true) !== end64.signature) break;
    return { count: wholeNumber(view, wide + 32, path), start: wholeNumber(view, wide + 48, path) };
  }
  return damaged(path, "no directory at its end");
}

function entryOf(bytes: Uint8Array, view: DataView, position: number, name: string, path: string): Uint8Array {
  const [flags, method] = [view.getUint16(position + 8, true), view.getUint16(position + 10, true)];
  if (method !== 0 || (flags & 1) !== 0) {
    fail({
      code: "model-unsupported",
      message: `an entry of the archive is ${method === 0 ? "encrypted" : "compressed"}`,
      place: { kind: "file", path },
      found: `${name}, ${method === 0 ? "encrypted" : `by method ${method}`}`,
      expected: "entries as torch.export.save stores them: uncompressed",
      help: "give the file that torch.export.save wrote, not one that was zipped again",
    });
  }
  const [size, at] = placeOf(view, position, path);
  if (at + local.bytes > bytes.length || view.getUint32(at, true) !== local.signature) {
    damaged(path, `no entry ${name} where its directory says`);
  }
  const start = at + local.bytes + view.getUint16(at + 26, true) + view.getUint16(at + 28, true);
  if (start + size > bytes.length) damaged(path, `the end of the file within the entry ${name}`);
  return bytes.subarray(start, start + size);
}

/** The size of an entry, and where its local header is. Zip64 has those that do not fit into 32 bits in a field of its own. */
function placeOf(view: DataView, position: number, path: string): readonly [size: number, at: number] {
  const stored = [20, 24, 42].map((field) => view.getUint32(position + field, true));
  const [packed = 0, size = 0, at = 0] = stored;
  if (!stored.includes(beyond.long)) return packed === size ? [size, at] : damaged(path, "an entry of two sizes");
  let field = position + central.bytes + view.getUint16(position + 28, true);
  const last = field + view.getUint16(position + 30, true);
  while (field + 4 <= last && view.getUint16(field, true) !== 1) field += 4 + view.getUint16(field + 2, true);
  let next = field + 4;
  const wide = (value: number): number => {
    if (value !== beyond.long) return value;
    if (next + 8 > last) damaged(path, "an entry without its zip64 sizes");
    next += 8;
    return wholeNumber(view, next - 8, path);
  };
  const [wideSize, widePacked] = [wide(size), wide(packed)];
  return wideSize === widePacked ? [wideSize, wide(at)] : damaged(path, "an entry of two sizes");
}

/** A number of 8 bytes. */
function wholeNumber(view: DataView, position: number, path: string): number {
  const value = Number(view.getBigUint64(position, true));
  return Number.isSafeInteger(value) ? value : damaged(path, `the position ${value}`);
}

/** Names stay inside the archive. */
function nameOf(bytes: Uint8Array, path: string): string {
  const name = String.fromCharCode(...bytes);
  const parts = name.split("/");
  const isPlain = !/[\\\0]|^[A-Za-z]:/u.test(name) && parts[0] !== "" && !parts.includes("..");
  if (isPlain) return name;
  return damaged(path, `an entry named ${JSON.stringify(name)}`, "names of files inside the archive");
}

/** The entries without their common first folder, which PyTorch names after the file. */
function withoutFolder(entries: ReadonlyMap<string, Uint8Array>, path: string): ReadonlyMap<string, Uint8Array> {
  const folders = new Set([...entries.keys()].map((name) => name.slice(0, name.indexOf("/") + 1)));
  const [folder = ""] = folders;
  if (folders.size !== 1 || folder === "") damaged(path, `${folders.size} folders`, "one folder with all entries");
  return new Map([...entries].map(([name, bytes]) => [name.slice(folder.length), bytes]));
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function damaged(path: string, found: string, expected = "a whole zip archive"): never {
  return fail({
    code: "model-syntax",
    message: "the file of a model is damaged, or no archive of torch.export",
    place: { kind: "file", path },
    found,
    expected,
    help: "write the file again with torch.export.save(exported_program, path), or copy it again",
  });
}
