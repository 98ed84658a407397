/**
 * Sends to standard error what a program file writes to standard output past Node's streams: to the descriptor, its
 * device file, or by a child process that inherits it. The command's output is its result. A thread shares descriptors
 * with the process, so Node's own functions are replaced, in this thread alone. What native code writes passes.
 */
import childProcess from "node:child_process";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const [output, error] = [1, 2];
const outputFiles: ReadonlySet<unknown> = new Set(["/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"]);

/** The first argument of some may also be a path. */
const byDescriptor = [
  "write",
  "writeSync",
  "writev",
  "writevSync",
  "writeFile",
  "writeFileSync",
  "appendFile",
  "appendFileSync",
];
const byPath = ["open", "openSync", "createWriteStream"];

export function divertOutput(): void {
  for (const name of byDescriptor) {
    replace(fs, name, ([to, ...rest]) => [to === output || outputFiles.has(to) ? error : to, ...rest]);
  }
  for (const name of byPath) {
    replace(fs, name, ([to, ...rest]) => [divertedPath(to), ...rest.map(withDescriptor)]);
  }
  for (const name of ["writeFile", "appendFile", "open"]) {
    replace(fs.promises, name, ([to, ...rest]) => [divertedPath(to), ...rest]);
  }
  // What spawn, exec, execFile and fork do.
  replace(childProcess.ChildProcess.prototype, "spawn", ([options]) => [withStreams(options)]);
  for (const name of ["spawnSync", "execFileSync", "execSync"]) {
    replace(childProcess, name, (given) => given.map(withStreams));
  }
  syncBuiltinESMExports();
}

/** Replaces a function by one that gets other arguments. */
function replace(owner: object, name: string, change: (given: readonly unknown[]) => readonly unknown[]): void {
  const original: unknown = Reflect.get(owner, name);
  if (typeof original !== "function") return;
  const changed = new Proxy(original, {
    apply: (target, self, given: readonly unknown[]): unknown => Reflect.apply(target, self, change(given)),
  });
  Reflect.set(owner, name, changed);
}

function divertedPath(path: unknown): unknown {
  return outputFiles.has(path) ? "/dev/stderr" : path;
}

function withDescriptor(options: unknown): unknown {
  return isOptions(options) && options["fd"] === output ? { ...options, fd: error } : options;
}

/** Options of a child process; other arguments stay as they are. */
function withStreams(options: unknown): unknown {
  return isOptions(options) && "stdio" in options ? { ...options, stdio: divertedStreams(options["stdio"]) } : options;
}

function divertedStreams(stdio: unknown): unknown {
  if (stdio === "inherit") return ["inherit", error, "inherit"];
  if (!Array.isArray(stdio)) return stdio;
  const streams: readonly unknown[] = stdio;
  return streams.map((stream, place) =>
    stream === output || (stream === "inherit" && place === output) ? error : stream,
  );
}

function isOptions(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
