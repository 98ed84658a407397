/**
 * The index definitions of a dump: `i84 = i82 % 8;`, one line each. They stand behind the container and are read before it; a line is
 * looked into when its name is used, so that values which nobody uses (nvFuser prints the parts of sizes too) may be anything.
 */
import type { Scalar } from "../../ir/scalar/scalar.ts";
import { type LookupName, parseDefinition } from "./scalar.ts";
import { failAt } from "./parse-error.ts";
import { expectAcrossLines, type Scanner, skipBlanks } from "./scanner.ts";

export interface Definitions {
  /** Where the right-hand side of a name starts. */
  readonly starts: ReadonlyMap<string, number>;
  readonly known: Map<string, Defined>;
  /** Names that are being looked up, to find circles. */
  readonly open: Set<string>;
}

interface Defined {
  readonly scalar: Scalar;
  /** The number of leaves when written out in full. */
  readonly leaves: number;
}

/** Names may stand for names many times over; index arithmetic of nvFuser's has a handful of leaves. */
const mostLeaves = 1024;

export const noDefinitions: Definitions = { starts: new Map(), known: new Map(), open: new Set() };

const line = /^[^\S\n]*(?<name>[A-Za-z_]\w*) = (?<value>[^;\n]*);[^\S\n]*\r?$/u;

/** Reads the lines from `position` as far as they define something; also where they end. */
export function collectDefinitions(
  text: string,
  position: number,
): { readonly definitions: Definitions; readonly end: number } {
  const starts = new Map<string, number>();
  let start = position;
  while (start < text.length) {
    const next = text.indexOf("\n", start);
    const end = next < 0 ? text.length : next;
    const lineText = text.slice(start, end);
    const match = line.exec(lineText);
    if (match?.groups === undefined) break;
    const { name = "" } = match.groups;
    starts.set(name, start + lineText.indexOf("=") + 2);
    start = end + 1;
  }
  return { definitions: { starts, known: new Map(), open: new Set() }, end: Math.min(start, text.length) };
}

/** The value of a defined name, with its parts written out; null for a name that is defined nowhere. `leafAt` answers for its leaves. */
export function lookUp(scanner: Scanner, definitions: Definitions, name: string, leafAt: LookupName): Scalar | null {
  return find(scanner, definitions, name, leafAt)?.scalar ?? null;
}

function find(scanner: Scanner, definitions: Definitions, name: string, leafAt: LookupName): Defined | null {
  const { starts, known, open } = definitions;
  const ready = known.get(name);
  if (ready !== undefined) return ready;
  const start = starts.get(name);
  if (start === undefined) return null;
  if (open.has(name)) failCircle(scanner, start, name);
  open.add(name);
  let leaves = 0;
  const inner: Scanner = { ...scanner, position: start };
  const value = parseDefinition(inner, (part, position) => {
    const defined = find(scanner, definitions, part, leafAt);
    leaves += defined?.leaves ?? 1;
    if (leaves > mostLeaves) failSize(scanner, start, name);
    return defined?.scalar ?? leafAt(part, position);
  });
  skipBlanks(inner);
  expectAcrossLines(inner, ";");
  open.delete(name);
  const scalar: Scalar = value.kind === "binary" ? { ...value, name } : value;
  const defined = { scalar, leaves };
  known.set(name, defined);
  return defined;
}

function failCircle(scanner: Scanner, position: number, name: string): never {
  failAt(scanner.source, position, {
    code: "dump-contradiction",
    message: `the index definition of ${name} leads back to ${name}`,
    expected: "definitions in terms of other values",
    help: "correct the index definitions",
  });
}

function failSize(scanner: Scanner, position: number, name: string): never {
  failAt(scanner.source, position, {
    code: "dump-unsupported",
    message: `the index definition of ${name} is too large`,
    found: `more than ${mostLeaves} values when written out`,
    expected: "index arithmetic of a few values",
    help: "simplify the index definitions",
  });
}
