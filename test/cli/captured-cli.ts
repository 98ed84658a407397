/** Runs the command line in this process on program files in a temporary folder, and captures its output. */
import { EventEmitter } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { PassThrough } from "node:stream";
import workerThreads from "node:worker_threads";
import * as braid from "@braid-compiler/braid";
import * as cpu from "@braid-compiler/braid/cpu";
import * as internals from "@braid-compiler/braid/internals";
import { runCli } from "../../src/cli/cli.ts";
import { answerTo } from "../../src/cli/program/apart/build-here.ts";
import type { BuildStart } from "../../src/cli/program/apart/build-request.ts";
import { createJiti, createSourceMaps } from "../../src/cli/program/source-maps.ts";
import { type Terminal, writers } from "../../src/cli/terminal/terminal.ts";

export interface CliRun {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

export function cli(...args: readonly string[]): Promise<CliRun> {
  return cliAt({}, ...args);
}

/** Evaluates program files in threads of their own, as the command does. */
export async function cliApart(...args: readonly string[]): Promise<CliRun> {
  threads.own++;
  try {
    return await cliAt({}, ...args);
  } finally {
    threads.own--;
  }
}

/** One instance of Braid for the command and the program file. */
const sources = {
  "@braid-compiler/braid": braid,
  "@braid-compiler/braid/cpu": cpu,
  "@braid-compiler/braid/internals": internals,
};

/** Runs of `cliApart` under way. */
const threads = { own: 0 };

/**
 * What build-apart.ts sees of a thread, which loads Braid anew in 50 ms: the same answer, by the same port, from this
 * thread.
 */
class NoThread extends EventEmitter {
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();

  constructor({ port, ...request }: BuildStart) {
    super();
    void answerTo(request, sources).then((answer) => port.postMessage(answer));
  }

  terminate(): Promise<number> {
    return Promise.resolve(0);
  }
}

const { Worker: OwnThread } = workerThreads;
workerThreads.Worker = new Proxy(OwnThread, {
  construct: (_, given: ConstructorParameters<typeof OwnThread>) => {
    const [file, options] = given;
    if (threads.own > 0 || !String(file).endsWith("/build-thread.js")) return new OwnThread(...given);
    return new NoThread(options?.workerData as BuildStart);
  },
});
syncBuiltinESMExports();

/** With another kind of terminal. */
export async function cliAt(terminal: Partial<Terminal>, ...args: readonly string[]): Promise<CliRun> {
  for (const file of args) {
    if (/\.m?[tj]s$/.test(file) && statSync(file, { throwIfNoEntry: false })?.isFile() === true)
      await compileOnce(file);
  }
  const written = { out: "", err: "" };
  const status = await runCli(args, {
    ...writers(
      (text) => void (written.out += text),
      (text) => void (written.err += text),
      { out: false, err: false },
    ),
    columns: 100,
    interactive: false,
    ...terminal,
  });
  return { status, ...written };
}

const compiled = new Map<string, string>();

/**
 * Fills the cache of compiled program files. The thread that evaluates one would load the compiler itself, which takes
 * it a fifth of a second; here it is loaded once.
 */
async function compileOnce(file: string): Promise<void> {
  const absolute = path.resolve(file);
  const text = readFileSync(absolute, "utf8");
  if (compiled.get(absolute) === text) return;
  compiled.set(absolute, text);
  const { transform } = createSourceMaps();
  // As load-program.ts does, but for what is evaluated.
  const jiti = createJiti(import.meta.url, {
    fsCache: false,
    moduleCache: false,
    interopDefault: false,
    sourceMaps: true,
    transform: (options) => (transform(options), { code: "" }),
  });
  try {
    await jiti.import(absolute);
  } catch {
    // The command says what is wrong with the file.
  }
}

export interface ProgramFolder {
  /** Writes a file and answers with its absolute path. */
  readonly write: (name: string, text: string) => string;
  readonly path: string;
  readonly remove: () => void;
}

export function programFolder(): ProgramFolder {
  const folder = mkdtempSync(path.join(tmpdir(), "braid-cli-"));
  return {
    path: folder,
    write: (name, text) => {
      const file = path.join(folder, name);
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, text);
      return file;
    },
    remove: () => {
      rmSync(folder, { recursive: true });
    },
  };
}
