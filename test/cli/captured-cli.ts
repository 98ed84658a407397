/** Runs the command line in this process on program files in a temporary folder, and captures its output. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { runCli } from "../../src/cli/cli.ts";
import { type Terminal, writers } from "../../src/cli/terminal/terminal.ts";

export interface CliRun {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

export function cli(...args: readonly string[]): Promise<CliRun> {
  return cliAt({}, ...args);
}

/** With another kind of terminal. */
export async function cliAt(terminal: Partial<Terminal>, ...args: readonly string[]): Promise<CliRun> {
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
