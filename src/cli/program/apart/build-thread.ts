/**
 * The thread that evaluates a program file for build-apart.ts. It loads only the API that builds programs and answers
 * with plain data. It is then ended, with whatever the file has left running.
 */
import childProcess from "node:child_process";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import process from "node:process";
import { parentPort, workerData } from "node:worker_threads";
import { DiagnosticError } from "../../../diagnostics/diagnostic.ts";
import { invariant } from "../../../support/invariant.ts";
import { buildHere } from "./build-here.ts";
import { type BuildAnswer, type BuildMessage, type ThreadRequest, isBuildStart } from "./build-request.ts";

// Sends to standard error what a program file writes to standard output past Node's streams: to the descriptor, its
// device file, or by a child process that inherits it. The command's output is its result. A thread shares descriptors
// with the process, so Node's own functions are replaced, in this thread alone. What native code writes passes.

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

function divertOutput(): void {
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

// Makes the methods of the language's own types constant in the thread of a program file: Braid runs there with the same
// ones. A file that replaces one throws at that line. New methods may be added, and objects may have their own.

/** Not those of every object, function, error and promise, which packages do set on objects of theirs. */
const types: readonly object[] = [Array, BigInt, Map, Math, Number, Object, Reflect, RegExp, Set, String];

/** What older classes set on the prototypes that they derive. */
const derived: ReadonlySet<string | symbol> = new Set(["constructor", "toString"]);

function keepBuiltins(): void {
  for (const type of types) {
    keepMethods(type);
    const prototype: unknown = Reflect.get(type, "prototype");
    if (typeof prototype === "object" && prototype !== null && prototype !== Object.prototype) keepMethods(prototype);
  }
}

function keepMethods(owner: object): void {
  for (const key of Reflect.ownKeys(owner)) {
    if (derived.has(key) || typeof Reflect.getOwnPropertyDescriptor(owner, key)?.value !== "function") continue;
    Reflect.defineProperty(owner, key, { writable: false, configurable: false });
  }
}

async function answerTo(request: ThreadRequest): Promise<BuildAnswer> {
  try {
    return { kind: "built", built: await buildHere(request) };
  } catch (error) {
    if (error instanceof DiagnosticError) return { kind: "refused", diagnostics: error.diagnostics };
    return { kind: "failed", stack: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

/** Structured clone refuses no data of Braid's, only a host program that the file wrote by hand. */
function unsendable(file: string, error: unknown): BuildAnswer {
  const diagnostic = {
    code: "program-invalid",
    message: "the program holds more than data",
    place: { kind: "file", path: file },
    found: error instanceof Error ? error.message : String(error),
    expected: "a HostProgram as HostProgramBuilder or parse makes it",
    help: "build the host program with HostProgramBuilder",
  } as const;
  return { kind: "refused", diagnostics: [diagnostic] };
}

/** The thread ends as soon as it has answered. Output that is still in its buffer would be lost. */
async function written(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableLength === 0) return;
  await new Promise<void>((resolve) => {
    stream.write("", () => {
      resolve();
    });
  });
}

invariant(parentPort !== null, "this file is a worker thread's");
const start: unknown = workerData;
invariant(isBuildStart(start), "the thread has a request", { start });
const { token, ...request } = start;
// The file has the same port and the same data as this module.
Reflect.deleteProperty(start, "token");
const post = parentPort.postMessage.bind(parentPort);
parentPort.postMessage = () => {
  throw new Error("the command takes no messages; return the program from program(...)");
};
const send = (answer: BuildAnswer): void => {
  post({ token, answer } satisfies BuildMessage);
};
divertOutput();
keepBuiltins();
const answer = await answerTo(request);
await Promise.all([written(process.stdout), written(process.stderr)]);
try {
  send(answer);
} catch (error) {
  send(unsendable(request.file, error));
}
