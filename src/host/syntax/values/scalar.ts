/** Scalars that a dump prints in full: `( ( 8 + ( rank - streamIdx ) ) % 8 )`, `( ceilDiv(i0, 3) )`. */
import { irSpellings, binary, constant, type Scalar, type ScalarOp, scalarOps } from "../../../ir/scalar/scalar.ts";
import { keysOf } from "../../../support/invariant.ts";
import { failAt } from "../text/source.ts";
import {
  expect,
  expectAcrossLines,
  expectNumber,
  failExpected,
  isDigit,
  peek,
  readWord,
  type DumpScanner,
  skipBlanks,
  take,
} from "../text/scanner.ts";

/** More than the index arithmetic of nvFuser nests. The limit bounds the stack. */
const deepest = 64;

const operators = keysOf(scalarOps);

/** Longer signs first, so that `<=` is not read as `<`. */
const infix: readonly { readonly text: string; readonly op: ScalarOp }[] = operators
  .filter((op) => scalarOps[op].call !== true)
  .map((op) => ({ text: scalarOps[op].text, op }))
  .sort((a, b) => b.text.length - a.text.length);

const calls: ReadonlyMap<string, ScalarOp> = new Map(
  operators.filter((op) => scalarOps[op].call === true).map((op) => [scalarOps[op].text, op] as const),
);

/** The IR's names by their spellings in any era. */
const spellings: ReadonlyMap<string, string> = new Map(
  Object.values(irSpellings).flatMap(({ namedScalars }) => [...namedScalars].map(([name, printed]) => [printed, name])),
);

/** `i84`, `b3`: a value of the program, which nvFuser numbers. Other words are names that a run binds. */
const numberedName = /^[bdfi]\d+$/u;

export function isNumberedName(word: string): boolean {
  return numberedName.test(word);
}

/** The value that a name stands for. */
export type LookupName = (name: string, position: number) => Scalar;

/** A name as a leaf: an extent, a loop's index, or a name that the run binds. */
export function leafOf(name: string): Extract<Scalar, { kind: "named" | "symbol" }> {
  return numberedName.test(name) ? { kind: "symbol", name } : { kind: "named", name: spellings.get(name) ?? name };
}

/** A scalar in full. `lookup` returns the values of names, which are leaves by default. */
export function parseScalar(scanner: DumpScanner, lookup: LookupName = leafOf, depth = 0): Scalar {
  const code = peek(scanner);
  if (isDigit(code)) return constant(parseInteger(scanner));
  if (code === minus) {
    scanner.position++;
    return constant(-parseInteger(scanner));
  }
  if (code === openParenthesis) return parseParenthesis(scanner, lookup, depth);
  const { position } = scanner;
  const word = readWord(scanner);
  if (word === "") failExpected(scanner, "a number, a name or an expression in parentheses");
  if (word === "true" || word === "false") return constant(word === "true" ? 1 : 0);
  if (peek(scanner) === openParenthesis) return parseCall(scanner, word, position, lookup, depth);
  return lookup(word, position);
}

/** `lhs op rhs` or `ceilDiv(lhs, rhs)` without enclosing parentheses: the right-hand side of a definition. */
export function parseDefinition(scanner: DumpScanner, lookup: LookupName): Scalar {
  const lhs = parseScalar(scanner, lookup);
  skipBlanks(scanner);
  const op = takeOperator(scanner);
  if (op === null) return lhs;
  skipBlanks(scanner);
  return binary(op, lhs, parseScalar(scanner, lookup));
}

const minus = 45;
const openParenthesis = 40;

/** `( lhs op rhs )`, or a call in parentheses. */
function parseParenthesis(scanner: DumpScanner, lookup: LookupName, depth: number): Scalar {
  if (depth >= deepest) failDepth(scanner);
  expect(scanner, "(");
  const lhs = parseScalar(scanner, lookup, depth + 1);
  skipBlanks(scanner);
  if (take(scanner, ")")) return lhs;
  const op = takeOperator(scanner);
  if (op === null) failExpected(scanner, `an operator (${infix.map(({ text }) => text).join(" ")}) or ")"`);
  skipBlanks(scanner);
  const rhs = parseScalar(scanner, lookup, depth + 1);
  skipBlanks(scanner);
  if (!take(scanner, ")")) failExpected(scanner, '")"');
  return binary(op, lhs, rhs);
}

function parseCall(scanner: DumpScanner, word: string, position: number, lookup: LookupName, depth: number): Scalar {
  const op = calls.get(word);
  if (op === undefined) {
    failAt(scanner.source, position, "dump-unsupported", `the scalar function ${word} is not known`, {
      found: `${word}(...)`,
      expected: [...calls.keys()].join(" or "),
      help: "write the value with the operators that Braid has",
    });
  }
  if (depth >= deepest) failDepth(scanner);
  expect(scanner, "(");
  const lhs = parseScalar(scanner, lookup, depth + 1);
  expect(scanner, ",");
  const rhs = parseScalar(scanner, lookup, depth + 1);
  expectAcrossLines(scanner, ")");
  return binary(op, lhs, rhs);
}

function takeOperator(scanner: DumpScanner): ScalarOp | null {
  return infix.find(({ text }) => take(scanner, text))?.op ?? null;
}

/** Rejects floats, which are neither sizes nor indices. */
function parseInteger(scanner: DumpScanner): number {
  const value = expectNumber(scanner, "a whole number");
  if (scanner.text[scanner.position] === ".") failExpected(scanner, "a whole number, without a fraction");
  return value;
}

function failDepth(scanner: DumpScanner): never {
  failAt(scanner.source, scanner.position, "dump-unsupported", "a scalar expression is nested too deeply", {
    found: `more than ${deepest} parentheses, one inside the other`,
    expected: `at most ${deepest}`,
    help: "give names to parts of the expression in the index definitions",
  });
}
