/**
 * Keeps the lines of stacks. Fusions record who called them, and vite maps each frame by searching source maps: for the
 * same few hundred frames again and again, a twentieth of the suite's time.
 */
type Prepare = NonNullable<typeof Error.prepareStackTrace>;

const done = Symbol.for("braid tests keep the lines of stacks");
const mapped = Error.prepareStackTrace?.bind(Error);

// This file is evaluated for each test file, in one process.
if (mapped !== undefined && Reflect.get(globalThis, done) !== true) {
  Reflect.set(globalThis, done, true);
  const lines = new Map<string, string>();
  const lineOf = (frame: NodeJS.CallSite): string => {
    const place = `${frame.getScriptNameOrSourceURL()}:${frame.getLineNumber()}:${frame.getColumnNumber()}`;
    const key = `${place} ${frame.getFunctionName()} ${frame.getTypeName()}`;
    let line = lines.get(key);
    if (line === undefined) {
      line = String(mapped(new Error("frame"), [frame])).slice("Error: frame".length);
      lines.set(key, line);
    }
    return line;
  };
  const prepare: Prepare = (error, frames) => `${error.name}: ${error.message}${frames.map(lineOf).join("")}`;
  Error.prepareStackTrace = prepare;
}
