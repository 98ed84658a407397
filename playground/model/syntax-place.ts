/** Where the syntax of a program breaks, by the parser of the editor, which goes on after an error. */
import { typescriptLanguage } from "@codemirror/lang-javascript";
import type { Diagnostic } from "../../src/diagnostics/diagnostic.ts";

/** The compiler's parser gives up at the start of the innermost function that it could not read: this names the line. */
export function atBrokenSyntax(diagnostic: Diagnostic, text: string): Diagnostic {
  const { message, place } = diagnostic;
  if (!message.startsWith("SyntaxError") || place?.kind !== "file") return diagnostic;
  const offset = firstError(text);
  if (offset === null) return diagnostic;
  const before = text.slice(0, offset).split("\n");
  const [line, column] = [before.length, (before.at(-1) ?? "").length + 1];
  return { ...diagnostic, source: `${place.path}:${line}:${column}`, place: { ...place, line, column } };
}

function firstError(text: string): number | null {
  let found: number | null = null;
  typescriptLanguage.parser.parse(text).iterate({
    enter: ({ type, from }) => {
      if (type.isError) found ??= from;
      return found === null;
    },
  });
  return found;
}
