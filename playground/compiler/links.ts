/** Which lines of the user's program a line of a printed program comes from: those that made the tensors it names. */
import type { Tensor } from "../../src/ir/domain.ts";
import type { LinkedLine } from "./parts.ts";

/** `tensors`: those that the text names by number. */
export function linkedLines(text: string, tensors: readonly Tensor[]): readonly LinkedLine[] {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => ({ text: line, sources: sourcesOf(line, tensors) }));
}

function sourcesOf(line: string, tensors: readonly Tensor[]): readonly number[] {
  const made = writtenPart(line);
  const numbers = Array.from(
    made.matchAll(/\bT(\d+)(?=_|\b)/gu),
    ([, id]) => tensors[Number(id)]?.origin?.source?.line,
  );
  return [...new Set(numbers.filter((number) => number !== undefined))];
}

/** Of `T3 = matmul(T1, T2)` and of `... outputs {T3}` what the statement makes; else the whole line. */
function writtenPart(line: string): string {
  const [, outputs] = /\bOutputs:\s*\{([^}]*)/u.exec(line) ?? [];
  if (outputs !== undefined) return outputs;
  const assigned = /^\s*(T\d+[^=]*?)\s*=\s/u.exec(line);
  return assigned?.[1] ?? line;
}
