/**
 * Names where a dump prints no more than a name: slice indices, peers and roots. `i84` is defined below the container, or is the index
 * of a loop around, or an extent; a word without a number (`streamIdx`, `rank`) is bound by the run. Anything else is missing from
 * the dump: eras without index definitions print names that they never explain.
 */
import type { Scalar } from "../../ir/scalar/scalar.ts";
import { type Definitions, lookUp } from "./definitions.ts";
import { leafOf, type LookupName, parseScalar } from "./scalar.ts";
import { failAt } from "./parse-error.ts";
import { readWord, type Scanner } from "./scanner.ts";

export interface Names {
  readonly definitions: Definitions;
  /** Extents and scalar inputs. */
  readonly symbols: ReadonlySet<string>;
  /** Indices of the loops around the statement. */
  readonly loops: readonly string[];
}

/** A value at a place where dumps print names; expressions that have no name stand there in full. */
export function parseNamed(scanner: Scanner, names: Names, what: string): Scalar {
  const start = scanner.position;
  const word = startsWord(scanner) ? readWord(scanner) : "";
  if (word === "" || scanner.text[scanner.position] === "(") {
    scanner.position = start;
    return parseScalar(scanner);
  }
  const leafAt: LookupName = (name, position) => knownLeaf(scanner, names, name, position, what);
  return lookUp(scanner, names.definitions, word, leafAt) ?? leafAt(word, start);
}

function knownLeaf(scanner: Scanner, names: Names, word: string, position: number, what: string): Scalar {
  const leaf = leafOf(word);
  if (leaf.kind === "named" || names.loops.includes(word) || names.symbols.has(word)) return leaf;
  return failAt(scanner.source, position, {
    code: "dump-incomplete",
    message: `${word} is used in ${what}, and the dump defines it nowhere`,
    found: word,
    expected: `a line "${word} = ...;" under "Index definitions:" behind the container`,
    help: "dump with index definitions (nvFuser from 2025-10 prints them, later with NVFUSER_DUMP='host_ir(indices)'), or add the line by hand",
  });
}

function startsWord({ text, position }: Scanner): boolean {
  const code = text.charCodeAt(position);
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 95;
}
