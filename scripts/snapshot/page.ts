/** The pages of a snapshot: texts without times and without paths of this machine. */
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createJiti } from "jiti";
import pc from "picocolors";
import { braid, braidCpu, braidCuda, flags, runCli } from "./sources.ts";

/** The folder of files that command lines read and write. */
export const scratch = mkdtempSync(path.join(tmpdir(), "braid-snapshot-"));
process.on("exit", () => rmSync(scratch, { recursive: true }));

let folder = "";
let longest = 4000;
const headLines = 30;

/** Unless `full`, long texts are cut to their first lines and a hash. */
export function startPages(outFolder: string, full: boolean): void {
  folder = path.resolve(outFolder);
  if (full) longest = Infinity;
}

export function hash(text: string | Uint8Array): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

function withoutPlaces(text: string): string {
  return text
    .replaceAll(scratch, "SCRATCH")
    .replaceAll(process.cwd(), "ROOT")
    .replaceAll(/\d+\.\d\d ms/g, "_ ms")
    .replaceAll(/"milliseconds": (\[[^\]]*\]|[\d.e-]+)/g, '"milliseconds": _');
}

/** Sections of one file. A repeated text is replaced by the name of its first section. */
export class Page {
  readonly #file: string;
  readonly #sections: string[] = [];
  readonly #titles = new Map<string, string>();

  constructor(file: string) {
    this.#file = path.join(folder, `${file}.txt`);
  }

  add(title: string, raw: string): void {
    const text = withoutPlaces(raw);
    const same = this.#titles.get(text);
    if (same === undefined) this.#titles.set(text, title);
    this.#sections.push(`## ${title}\n${same === undefined ? this.#shown(text) : `as ${same}`}\n`);
  }

  #shown(text: string): string {
    if (text.length <= longest) return text;
    const lines = text.split("\n");
    const head = lines.slice(0, headLines).map((line) => line.slice(0, 200));
    return [...head, `... ${lines.length} lines, ${hash(text)}`].join("\n");
  }

  save(): void {
    mkdirSync(path.dirname(this.#file), { recursive: true });
    writeFileSync(this.#file, this.#sections.join("\n"));
  }
}

/** The output of a command line, and its status unless 0. */
export async function cli(...args: readonly string[]): Promise<string> {
  const written = { out: "", err: "" };
  const status = await runCli(args, {
    out: (text) => void (written.out += text),
    err: (text) => void (written.err += text),
    outColors: pc.createColors(false),
    errColors: pc.createColors(false),
    columns: 100,
    interactive: false,
  });
  return [written.out, written.err, ...(status === 0 ? [] : [`status ${status}\n`])].join("");
}

/** The text that `make` returns, or the message of its error. */
export async function textOr(make: () => string | Promise<string>): Promise<string> {
  try {
    return await make();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Values keyed by the meaning of a flag; true for a flag without a value. */
export type FlagValues = { readonly [K in keyof typeof flags]?: string | true };

export function argumentsOf(values: FlagValues): readonly string[] {
  return Object.entries(values).flatMap(([name, value]) => {
    const flag = flags[name as keyof typeof flags];
    if (flag.includes("=")) return [value === true ? flag : `${flag}=${value}`];
    return value === true ? [flag] : [flag, value];
  });
}

export function titleOf(values: FlagValues): string {
  const words = Object.entries(values).map(([name, value]) => (value === true ? name : `${name}=${value}`));
  return words.length === 0 ? "default" : words.join(" ");
}

const jiti = createJiti(import.meta.url, {
  fsCache: false,
  interopDefault: false,
  virtualModules: {
    "@braid-compiler/braid": braid,
    "@braid-compiler/braid/cpu": braidCpu,
    "@braid-compiler/braid/cuda": braidCuda,
  },
});

/** Loads a module of the repository with the running `braid`. `T` is the type of its exports. */
export async function load<T>(file: string): Promise<T> {
  return await jiti.import<T>(path.resolve(file));
}
