/**
 * The archive of torch.export.save: one folder with all entries. PyTorch stores them uncompressed, so that a small file
 * cannot grow.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import { utf8Text } from "../../support/json-document.ts";
import type { ByteSource } from "../byte-source.ts";
import { type ZipEntry, zipEntries } from "../zip.ts";
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

/** Throws `model-syntax` for what is no whole archive, and `model-unsupported` for entries in another form. */
export function openArchive(source: ByteSource, path: string): Archive {
  const [first, second] = source.read(0, 2);
  if (first !== 0x50 || second !== 0x4b) {
    damaged(path, "other bytes at its start", "a zip archive, as torch.export.save writes it");
  }
  const entries = zipEntries(source, (found, expected) => damaged(path, found, expected));
  for (const [name, entry] of entries) {
    requirePlainName(name, path);
    requireStored(entry, name, path);
  }
  return { path, entries: withoutFolder(entries, path) };
}

/** The text of an entry. Throws `model-syntax`, and a URIError for bytes that are no text. */
export function entryText({ read }: ArchiveEntry): string {
  return utf8Text(read());
}

function requireStored({ method, isEncrypted }: ZipEntry, name: string, path: string): void {
  if (method === 0 && !isEncrypted) return;
  fail("model-unsupported", `an entry of the archive is ${method === 0 ? "encrypted" : "compressed"}`, {
    place: { kind: "file", path },
    found: `${name}, ${method === 0 ? "encrypted" : `by method ${method}`}`,
    expected: "entries as torch.export.save stores them: uncompressed",
    help: "give the file that torch.export.save wrote, not one that was zipped again",
  });
}

/** Names stay inside the archive. */
function requirePlainName(name: string, path: string): void {
  const parts = name.split("/");
  const isPlain = !/[\\\0]|^[A-Za-z]:/u.test(name) && parts[0] !== "" && !parts.includes("..");
  if (!isPlain) damaged(path, `an entry named ${JSON.stringify(name)}`, "names of files inside the archive");
}

/** The entries without their common first folder, which PyTorch names after the file. */
function withoutFolder(entries: ReadonlyMap<string, ArchiveEntry>, path: string): ReadonlyMap<string, ArchiveEntry> {
  const folders = new Set([...entries.keys()].map((name) => name.slice(0, name.indexOf("/") + 1)));
  const [folder = ""] = folders;
  if (folders.size !== 1 || folder === "") damaged(path, `${folders.size} folders`, "one folder with all entries");
  return new Map([...entries].map(([name, entry]) => [name.slice(folder.length), entry]));
}

function damaged(path: string, found: string, expected = "a whole zip archive"): never {
  return fail("model-syntax", "the file of a model is damaged, or no archive of torch.export", {
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
    return fail("model-syntax", "a document of a model's file is no JSON", {
      place: { kind: "file", path: `${path}: ${name}` },
      found: error.message,
      expected: "JSON, as torch.export.save writes it",
      help,
    });
  }
}
