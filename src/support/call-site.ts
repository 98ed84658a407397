/**
 * Where the user's code called Braid. A mark is a stack that the engine formats when it is read. Engines without V8's
 * stacks have no marks, and Braid bundled into one file with the user's code has no sites.
 */
export interface CallSite {
  readonly path: string;
  /** From 1, as is the column. */
  readonly line: number;
  readonly column: number;
}

/** A stack that was taken and not yet formatted. */
export interface CallMark {
  readonly stack?: unknown;
}

/** Braid's own frames between the user's call and the mark of a tensor, and one of the user's. */
const markFrames = 7;

/** Enough for any of Braid's calls. */
const failureFrames = 60;

interface Capturing {
  stackTraceLimit: number;
  readonly captureStackTrace: (target: object, above: unknown) => void;
}

function capturing(error: object): error is Capturing {
  return "captureStackTrace" in error && typeof error.captureStackTrace === "function" && "stackTraceLimit" in error;
}

export function markCall(frames = markFrames): CallMark | null {
  const errors: object = Error;
  if (!capturing(errors)) return null;
  const limit = errors.stackTraceLimit;
  errors.stackTraceLimit = frames;
  const mark: CallMark = {};
  errors.captureStackTrace(mark, markCall);
  errors.stackTraceLimit = limit;
  return mark;
}

/** The line of the user's code that is running, `mlp.ts:12:15`; null if none is. For errors: it reads a whole stack. */
export function runningLine(): string | null {
  const mark = markCall(failureFrames);
  const site = mark === null ? null : siteOf(mark);
  return site === null ? null : siteText(site);
}

/** The innermost frame outside Braid, packages and Node; null if the stack has none. */
export function siteOf({ stack }: CallMark): CallSite | null {
  // Another type where the user's code has replaced Error.prepareStackTrace.
  if (typeof stack !== "string") return null;
  for (const text of stack.split("\n")) {
    const [, location, line, column] = /^\s*at (?:.* \()?(.+?):(\d+):(\d+)\)?$/u.exec(text) ?? [];
    if (location === undefined) continue;
    const path = location.replace(/^async /u, "").replace(/^file:\/\//u, "");
    if (isUsers(path)) return { path, line: Number(line), column: Number(column) };
  }
  return null;
}

/** `mlp.ts:12:15`, as editors and terminals open it. */
export function siteText({ path, line, column }: CallSite): string {
  return `${path}:${line}:${column}`;
}

function isUsers(path: string): boolean {
  return /^(?:\/|[A-Za-z]:[\\/])/u.test(path) && !path.startsWith(ownFolder) && !/[\\/]node_modules[\\/]/u.test(path);
}

/** The folder of Braid's modules: `dist`, or `src` where the sources run. Unknown outside V8. */
const ownFolder = folderOf(markCallHere());

function markCallHere(): string {
  return new Error("here").stack?.split("\n")[1] ?? "";
}

function folderOf(frame: string): string {
  const [, path = ""] = /(?:file:\/\/|\(|at )((?:\/|[A-Za-z]:[\\/]).*?):\d+:\d+\)?$/u.exec(frame) ?? [];
  const end = Math.max(path.lastIndexOf("/dist/"), path.lastIndexOf("/src/"));
  return end < 0 ? "\0" : path.slice(0, path.indexOf("/", end + 1) + 1);
}
