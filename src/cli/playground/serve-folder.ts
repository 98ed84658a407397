/** Serves the files of one folder on 127.0.0.1, with the headers that keep the page from talking to anybody else. */
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import path from "node:path";

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
