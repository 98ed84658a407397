/**
 * The zip archive of torch.export.save. PyTorch stores entries uncompressed, so an entry is a part of the file that is
 * read when it is asked for: nothing is inflated, and a small file cannot grow. Reads the central directory, with zip64.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import { utf8Text } from "../../support/json-document.ts";
import type { ByteSource } from "../byte-source.ts";
import type { Json } from "../json.ts";

export interface ArchiveEntry {
  /** In bytes. */
  readonly size: number;
  /** Throws `model-syntax` for an entry that is not where the directory says. */
  readonly read: () => Uint8Array;
}

export interface Archive {
  /** Of the file, for messages. */
  readonly path: string;
  /** By name, without the folder that holds all entries. */
  readonly entries: ReadonlyMap<string, ArchiveEntry>;
}

interface File {
  readonly path: string;
  readonly source: ByteSource;
}

const end = { signature: 0x06054b50, bytes: 22, longestComment: 0xffff } as const;
const end64 = { signature: 0x06064b50, bytes: 56 } as const;
const locator64 = { signature: 0x07064b50, bytes: 20 } as const;
const central = { signature: 0x02014b50, bytes: 46 } as const;
const local = { signature: 0x04034b50, bytes: 30 } as const;

/** Of these two values, a zip64 field has the number. */
const beyond = { short: 0xffff, long: 0xffffffff } as const;

/** A directory of a million entries. No model has as many tensors. */
const mostDirectoryBytes = 2 ** 27;

/** Throws `model-syntax` for what is no whole archive, and `model-unsupported` for entries in another form. */
export function openArchive(source: ByteSource, path: string): Archive {
  const file = { path, source };
  const start = source.read(0, 4);
  if (start.length < 4 || viewOf(start).getUint32(0, true) !== local.signature) {
    damaged(path, "other bytes at its start", "a zip archive, as torch.export.save writes it");
  }
  const directory = directoryOf(file);
  const view = viewOf(directory.bytes);
  const entries = new Map<string, ArchiveEntry>();
  let position = 0;
  for (let i = 0; i < directory.count; i++) {
    if (position + central.bytes > view.byteLength || view.getUint32(position, true) !== central.signature) {
      damaged(path, `no entry ${i} of ${directory.count} in its directory`);
    }
    const [nameLength, extraLength] = [view.getUint16(position + 28, true), view.getUint16(position + 30, true)];
    const nameStart = position + central.bytes;
    const next = nameStart + nameLength + extraLength + view.getUint16(position + 32, true);
    if (next > view.byteLength) damaged(path, "the end of the file within its directory");
    const name = nameOf(directory.bytes.subarray(nameStart, nameStart + nameLength), path);
    if (entries.has(name)) damaged(path, `two entries ${JSON.stringify(name)}`, "each entry once");
    entries.set(name, entryOf(file, view, position, name));
    position = next;
  }
  return { path, entries: withoutFolder(entries, path) };
}

/** The text of an entry. Throws `model-syntax`, and a URIError for bytes that are no text. */
export function entryText({ read }: ArchiveEntry): string {
  return utf8Text(read());
}

/** The number of entries, and the bytes that describe them. */
function directoryOf({ path, source }: File): { readonly count: number; readonly bytes: Uint8Array } {
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
    if (!isWide) return directoryAt({ path, source }, fields[0], fields[1], start);
    const wide = viewOf(source.read(wholeNumber(view, locator + 8, path), end64.bytes));
    if (wide.byteLength < end64.bytes || wide.getUint32(0, true) !== end64.signature) break;
    const [count, bytes, at] = [32, 40, 48].map((field) => wholeNumber(wide, field, path));
    return directoryAt({ path, source }, count ?? 0, bytes ?? 0, at ?? 0);
  }
  return damaged(path, "no directory at its end");
}

function directoryAt(
  { path, source }: File,
  count: number,
  length: number,
  start: number,
): { readonly count: number; readonly bytes: Uint8Array } {
  if (length > mostDirectoryBytes) damaged(path, `a directory of ${length} bytes`);
  return { count, bytes: source.read(start, length) };
}

function entryOf({ path, source }: File, view: DataView, position: number, name: string): ArchiveEntry {
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
  if (at + local.bytes + size > source.size) damaged(path, `the end of the file within the entry ${name}`);
  return {
    size,
    read: () => {
      const header = viewOf(source.read(at, local.bytes));
      if (header.byteLength < local.bytes || header.getUint32(0, true) !== local.signature) {
        damaged(path, `no entry ${name} where its directory says`);
      }
      const start = at + local.bytes + header.getUint16(26, true) + header.getUint16(28, true);
      const bytes = source.read(start, size);
      return bytes.length === size ? bytes : damaged(path, `the end of the file within the entry ${name}`);
    },
  };
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
function withoutFolder(entries: ReadonlyMap<string, ArchiveEntry>, path: string): ReadonlyMap<string, ArchiveEntry> {
  const folders = new Set([...entries.keys()].map((name) => name.slice(0, name.indexOf("/") + 1)));
  const [folder = ""] = folders;
  if (folders.size !== 1 || folder === "") damaged(path, `${folders.size} folders`, "one folder with all entries");
  return new Map([...entries].map(([name, entry]) => [name.slice(folder.length), entry]));
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

/** The document of an entry. Throws `model-syntax` for text that is no JSON. */
export function parseDocument(entry: ArchiveEntry, path: string, name: string): Json {
  const help = "write the file again with torch.export.save(exported_program, path)";
  const invalid = { code: "model-invalid", message: "a document of a model's file has another form", help } as const;
  try {
    const value: unknown = JSON.parse(entryText(entry));
    return { value, document: { path, entry: name, invalid }, parent: null, key: "" };
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof URIError)) throw error;
    return fail({
      code: "model-syntax",
      message: "a document of a model's file is no JSON",
      place: { kind: "file", path: `${path}: ${name}` },
      found: error.message,
      expected: "JSON, as torch.export.save writes it",
      help,
    });
  }
}
