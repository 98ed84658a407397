/**
 * Finds the containers in a text; everything between them is other output. A prefix before the title of a container (a
 * launcher's, or a mail's `> `) is cut off all of its lines. Blanks of an indented copy stay, since they do no harm.
 */
import { containerTitle } from "../syntax/sections.ts";
import type { Source } from "../syntax/text/source.ts";

const byteOrderMark = 0xfeff;

/** One source per container, from the line of its title to the next title. */
export function findContainers(text: string, file: string): readonly Source[] {
  const sources: Source[] = [];
  let line = 1;
  let counted = 0;
  for (let found = text.indexOf(containerTitle); found >= 0;) {
    const next = text.indexOf(containerTitle, found + containerTitle.length);
    const lineStart = text.lastIndexOf("\n", found) + 1;
    // A byte order mark does not count as a character of the first line.
    const start = text.charCodeAt(lineStart) === byteOrderMark ? lineStart + 1 : lineStart;
    const end = next < 0 ? text.length : text.lastIndexOf("\n", next) + 1;
    line += countLines(text, counted, start);
    counted = start;
    const prefix = text.slice(start, found);
    sources.push(
      /\S/u.test(prefix)
        ? withoutPrefix(text.slice(start, Math.max(end, start)), prefix, file, line)
        : {
            file,
            text: text.slice(start, Math.max(end, found + containerTitle.length)),
            firstLine: line,
            prefixLength: 0,
            lines: null,
          },
    );
    found = next;
  }
  return sources;
}

function countLines(text: string, from: number, to: number): number {
  let count = 0;
  for (let end = text.indexOf("\n", from); end >= 0 && end < to; end = text.indexOf("\n", end + 1)) count++;
  return count;
}

/** A line without the prefix is other output, unless it is blank or only the last blanks of its prefix are missing. */
function withoutPrefix(text: string, prefix: string, file: string, firstLine: number): Source {
  const kept: string[] = [];
  const lines: number[] = [];
  const bare = prefix.trimEnd();
  text.split("\n").forEach((line, i) => {
    const own = line.startsWith(prefix) ? line.slice(prefix.length) : line.trimEnd() === bare ? "" : null;
    if (own === null) return;
    kept.push(own);
    lines.push(firstLine + i);
  });
  return { file, text: kept.join("\n"), firstLine, prefixLength: prefix.length, lines };
}
