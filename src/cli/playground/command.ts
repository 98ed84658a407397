/** `braid playground`: serves the page that compiles in the browser, until it is interrupted. */
import { Command, Option } from "commander";
import { access, readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { packageFile } from "../../backends/package-file.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { systemReason } from "../../support/wording.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import type { Terminal } from "../terminal/terminal.ts";

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
  return fail("option-value", "the port is not a port number", {
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
    return fail("option-value", "the port is not available", {
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
    return fail("file-unreadable", "the playground is not built", {
      place: { kind: "file", path: folder },
      found: systemReason(error),
      expected: "the files of the page",
      help: "run npm run build:playground in the repository, or install the package again",
    });
  }
}

// Serves the files of one folder on 127.0.0.1, with the headers that keep the page from talking to anybody else.

const types: ReadonlyMap<string, string> = new Map([
  [".html", "text/html; charset=utf-8"],
  [".js", "text/javascript; charset=utf-8"],
  [".css", "text/css; charset=utf-8"],
]);

/** As in playground/index.html, and against being framed. Workers of blobs inherit the page's policy. */
const policy = [
  "default-src 'none'",
  "script-src 'self' 'unsafe-eval'",
  "worker-src blob:",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const headers = {
  "Content-Security-Policy": policy,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cache-Control": "no-cache",
} as const;

export interface Serving {
  readonly port: number;
  readonly close: () => Promise<void>;
}

/** `port` 0: any free one. Rejects with the system's error if the port is not available. */
export async function serveFolder(folder: string, port: number): Promise<Serving> {
  const server = createServer((request, response) => {
    void respond(folder, request, response);
  });
  await listening(server, port);
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

function listening(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      server.off("error", reject);
      resolve();
    });
  });
}

async function respond(folder: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const file = request.method === "GET" || request.method === "HEAD" ? fileOf(folder, request) : null;
  const content = file === null ? null : await contentOf(file);
  if (file === null || content === null) {
    response.writeHead(404, { ...headers, "Content-Type": "text/plain; charset=utf-8" });
    response.end("not found\n");
    return;
  }
  response.writeHead(200, { ...headers, "Content-Type": types.get(path.extname(file)) ?? "application/octet-stream" });
  response.end(request.method === "HEAD" ? undefined : content);
}

/**
 * Null for a path outside the folder, and for a host name that is not this machine's: a page of another site may have
 * its own name point here.
 */
function fileOf(folder: string, { url = "/", headers: { host = "" } }: IncomingMessage): string | null {
  if (!/^(?:127\.0\.0\.1|localhost)(?::\d+)?$/u.test(host)) return null;
  const name = decoded(url.replace(/[?#].*$/u, ""));
  if (name === null || name.includes("\0")) return null;
  const file = path.join(folder, name.endsWith("/") ? `${name}index.html` : name);
  return file.startsWith(folder + path.sep) ? file : null;
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

async function contentOf(file: string): Promise<Buffer | null> {
  try {
    return await readFile(file);
  } catch {
    return null;
  }
}
