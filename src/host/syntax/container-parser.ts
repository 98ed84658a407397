/** A container that is being read: the scanner and the tables that grow. Everything here lives for one call of `parse`. */
import type { Statement } from "../nodes.ts";
import type { Names } from "./names.ts";
import type { Scanner } from "./scanner.ts";
import type { StreamTable } from "./stream-table.ts";
import type { TensorTable } from "./tensor-table.ts";
import type { ParsedUnit } from "../parse/unit-tables.ts";

export interface ContainerParser {
  readonly scanner: Scanner;
  readonly tensors: TensorTable;
  readonly streams: StreamTable;
  readonly names: Names;
  /** Indices of the loops around the statement: those of `names`. */
  readonly loops: string[];
  /** Indices of all loops so far. */
  readonly loopNames: Set<string>;
  /** Numbers of units that are posted, with the place of the first post. */
  readonly posted: Map<number, number>;
  readonly units: Map<number, ParsedUnit>;
  /** The next free number of a communication. */
  exprCount: number;
  /** Roots are device ids before 2026, and positions in the team from then on. */
  readonly rootsAreDevices: boolean;
  /** Numbers of groups that print none; made when the first is met. */
  groupNumbers: ReadonlyMap<number, number> | null;
  /** The column of the container's own lines. */
  readonly column: number;
  /** The line of the file in which each statement begins. */
  readonly lines: Map<Statement, number>;
  readonly counted: LineCount;
}

/** Lines counted so far, from the beginning of the text. */
export interface LineCount {
  position: number;
  index: number;
}

/** The line of the file at the scanner's position; positions must not go back. */
export function currentLine({ scanner, counted }: ContainerParser): number {
  const { source, text, position } = scanner;
  for (let end = text.indexOf("\n", counted.position); end >= 0 && end < position;) {
    counted.position = end + 1;
    counted.index++;
    end = text.indexOf("\n", counted.position);
  }
  return source.lines?.[counted.index] ?? source.firstLine + counted.index;
}
