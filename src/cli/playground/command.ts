/** `braid playground`: serves the page that compiles in the browser, until it is interrupted. */
import { access } from "node:fs/promises";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { Command, Option } from "commander";
import { packageFile } from "../../backends/package-file.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { systemReason } from "../../support/system-reason.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { type Serving, serveFolder } from "./serve-folder.ts";

/** The same each time if it is free: the browser keeps the last program by port. */
const usualPort = 7373;
const largestPort = 65_535;

const signals = [
  ["SIGHUP", exitStatus.hungUp],
  ["SIGINT", exitStatus.interrupted],
  ["SIGTERM", exitStatus.terminated],
] as const;

export function playgroundCommand(terminal: Terminal, finish: (status: ExitStatus) => void): Command {
  return new Command("playground")
    .description("Serves a page on this machine that compiles, verifies and explains programs as you type.")
    .addOption(
      new Option("--port <n>", `serve on this port (default: ${usualPort}, or any free one)`).argParser(portOf),
    )
    .action(async ({ port }: { readonly port?: number }) => {
      const folder = await builtFolder();
      const serving = await serve(folder, port ?? null);
      terminal.out(`http://127.0.0.1:${serving.port}/ (Ctrl-C ends it)\n`);
      const status = await signalled();
      await serving.close();
      finish(status);
    });
}

/** The status of the signal that ends the server. */
function signalled(): Promise<ExitStatus> {
  return new Promise((resolve) => {
    for (const [signal, status] of signals) {
      process.once(signal, () => {
        resolve(status);
      });
    }
  });
}

function portOf(text: string): number {
  const port = /^\d+$/u.test(text) ? Number(text) : Number.NaN;
  if (port >= 0 && port <= largestPort) return port;
  return fail({
    code: "option-value",
    message: "the port is not a port number",
    place: { kind: "option", text: "--port" },
    found: text,
    expected: `a whole number from 0 to ${largestPort}; 0: any free port`,
    help: `write it like --port ${usualPort}, or leave it out`,
  });
}

async function serve(folder: string, port: number | null): Promise<Serving> {
  try {
    return await serveFolder(folder, port ?? usualPort);
  } catch (error) {
    if (port === null) return serveFolder(folder, 0);
    return fail({
      code: "option-value",
      message: "the port is not available",
      place: { kind: "option", text: "--port" },
      found: `${port}: ${systemReason(error)}`,
      expected: "a port that no other program uses",
      help: "choose another port, or leave --port out",
    });
  }
}

async function builtFolder(): Promise<string> {
  const folder = path.resolve(fileURLToPath(packageFile("dist/playground")));
  try {
    await access(path.join(folder, "index.html"));
    return folder;
  } catch (error) {
    return fail({
      code: "file-unreadable",
      message: "the playground is not built",
      place: { kind: "file", path: folder },
      found: systemReason(error),
      expected: "the files of the page",
      help: "run npm run build:playground in the repository, or install the package again",
    });
  }
}
