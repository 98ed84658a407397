/** Tells traces that `braid run --trace` wrote from programs: a trace is explained beside its program. */
import { fail } from "../../diagnostics/diagnostic.ts";
import { startOf } from "./dump-file.ts";

export function isOwnTrace(file: string): boolean {
  return startOf(file).startsWith('{"displayTimeUnit":"ns","otherData":{');
}

/** A fix: what to type instead. */
export function explainTraceText(file: string, program = "FILE"): string {
  const which = program === "FILE" ? ", where FILE is the program that was run" : "";
  return `explain the trace with its program: braid explain ${program} --trace ${file}${which}`;
}

/** Throws `option-value` if one of FILES of \`braid explain\` is such a trace. */
export function requireNoOwnTrace(files: readonly string[]): void {
  const own = files.find(isOwnTrace);
  if (own === undefined) return;
  const [program = "FILE"] = files.filter((file) => !isOwnTrace(file));
  fail("option-value", "a trace of braid run is no program", {
    place: { kind: "file", path: own },
    found: "a file that braid run --trace wrote",
    expected: "a program, or traces of PyTorch's profiler",
    help: explainTraceText(own, program),
  });
}
