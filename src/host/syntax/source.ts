/**
 * The text of one container, and where it stands in the file. Copies may be indented, and launchers put a prefix before every line
 * (`[1,0]<stdout>:`): the prefix is not part of the text, and lines of other ranks between are left out.
 */
export interface Source {
  /** As the user names it. */
  readonly file: string;
  readonly text: string;
  /** The line of the file, from 1, in which `text` starts. */
  readonly firstLine: number;
  /** Characters before the text's lines in the file. */
  readonly prefixLength: number;
  /** The line of the file for every line of `text`, where lines were left out; else null. */
  readonly lines: readonly number[] | null;
}

export interface SourcePlace {
  readonly line: number;
  /** From 1. */
  readonly column: number;
  /** The line's text, without prefix and line end. */
  readonly lineText: string;
  /** Where in `lineText` the place is, from 0. */
  readonly offset: number;
}

export function placeOf({ text, firstLine, prefixLength, lines }: Source, position: number): SourcePlace {
  let index = 0;
  let start = 0;
  for (let end = text.indexOf("\n"); end >= 0 && end < position; end = text.indexOf("\n", start)) {
    index++;
    start = end + 1;
  }
  const end = text.indexOf("\n", start);
  const lineText = text.slice(start, end < 0 ? text.length : end).replace(/\r$/u, "");
  const offset = Math.min(position - start, lineText.length);
  return { line: lines?.[index] ?? firstLine + index, column: offset + prefixLength + 1, lineText, offset };
}
