/**
 * Scopes in dump text: as in Python, the body of a loop or branch stands two columns further in than its header, and ends where a line
 * does not.
 */
import type { IterDomain } from "../../ir/domain.ts";
import { constant, type Scalar } from "../../ir/scalar/scalar.ts";
import { sameScalar } from "../../ir/scalar/fold.ts";
import type { ForLoop, IfThenElse, Statement } from "../nodes.ts";
import { type ContainerParser, currentLine } from "../syntax/container-parser.ts";
import { parseAxis } from "../syntax/axis.ts";
import { failAt } from "../syntax/parse-error.ts";
import { leafOf, parseScalar } from "../syntax/scalar.ts";
import { parseStatement } from "./statement.ts";
import type { TensorTable } from "../syntax/tensor-table.ts";
import { expect, expectLineEnd, failExpected, readWord, type Scanner, skipBlanks, take } from "../syntax/scanner.ts";

/** Deeper than host programs nest; bounds the stack. */
const deepest = 64;

const indentation = 2;

/** The statements from here on that begin in `column`; the scanner is left at the beginning of the first line that does not. */
export function parseScope(parser: ContainerParser, column: number, depth: number): readonly Statement[] {
  const { scanner } = parser;
  const statements: Statement[] = [];
  while (enterLine(scanner, column)) {
    const line = currentLine(parser);
    const statement = parseAny(parser, column, depth);
    parser.lines.set(statement, line);
    statements.push(statement);
    // Behind a loop or branch the scanner is at the beginning of a line already.
    if (statement.kind !== "ForLoop" && statement.kind !== "IfThenElse") expectLineEnd(scanner);
  }
  return statements;
}

/** Goes to the next line that is not blank; into it if it begins in `column`, to its beginning if it ends the scope. */
function enterLine(scanner: Scanner, column: number): boolean {
  const { text } = scanner;
  let lineStart = scanner.position;
  if (text.charCodeAt(lineStart) === 10) lineStart++;
  for (;;) {
    scanner.position = lineStart;
    skipBlanks(scanner);
    if (text.charCodeAt(scanner.position) !== 10) break;
    lineStart = scanner.position + 1;
  }
  const own = scanner.position - lineStart;
  if (own === column && scanner.position < text.length && !text.startsWith("ELSE", scanner.position)) return true;
  if (own > column) {
    failAt(scanner.source, scanner.position, {
      code: "dump-syntax",
      message: "a line is indented too far",
      found: `${own} blanks`,
      expected: `${column} blanks, or fewer after the end of a loop or branch`,
      help: "indent the bodies of FOR, IF and ELSE by two blanks",
    });
  }
  scanner.position = lineStart;
  return false;
}

function parseAny(parser: ContainerParser, column: number, depth: number): Statement {
  const { scanner } = parser;
  const isLoop = take(scanner, "FOR ");
  if (!isLoop && !take(scanner, "IF ")) return parseStatement(parser);
  if (depth >= deepest) {
    failAt(scanner.source, scanner.position, {
      code: "dump-unsupported",
      message: "loops and branches are nested too deeply",
      found: `more than ${deepest} levels`,
      expected: `at most ${deepest}`,
      help: "pass the dump of a host program",
    });
  }
  return isLoop ? parseLoop(parser, column, depth) : parseBranch(parser, column, depth);
}

/** `FOR streamIdx in istreamIdx2{i0}:` runs over the axis' indices; `FOR i535 from 0 to 3:`, Braid also `from 1 to 7 step 2`. */
function parseLoop(parser: ContainerParser, column: number, depth: number): ForLoop {
  const { scanner, loops, tensors } = parser;
  skipBlanks(scanner);
  const wordStart = scanner.position;
  const word = readWord(scanner);
  if (word === "") failExpected(scanner, "the name of the loop's index", wordStart);
  skipBlanks(scanner);
  let iterDomain: ForLoop["iterDomain"] = null;
  let start: Scalar = constant(0);
  let stop: Scalar;
  let step: Scalar = constant(1);
  if (take(scanner, "in ")) {
    skipBlanks(scanner);
    const axis = parseAxis(scanner);
    iterDomain = ownAxis(tensors, axis);
    stop = iterDomain.extent;
  } else {
    expect(scanner, "from");
    start = parseScalar(scanner);
    expect(scanner, "to");
    stop = parseScalar(scanner);
    skipBlanks(scanner);
    if (take(scanner, "step")) {
      skipBlanks(scanner);
      step = parseScalar(scanner);
    }
  }
  expect(scanner, ":");
  expectLineEnd(scanner);
  loops.push(word);
  parser.loopNames.add(word);
  const body = parseScope(parser, column + indentation, depth + 1);
  loops.pop();
  return { kind: "ForLoop", iterDomain, index: leafOf(word), start, stop, step, body };
}

/** The axis of the tensor that it belongs to, if that prints in the same way. */
function ownAxis({ axes }: TensorTable, axis: IterDomain): IterDomain {
  const own = axes.get(axis.id)?.axis;
  if (own === undefined || own.iterType !== axis.iterType || own.parallelType !== axis.parallelType) return axis;
  return sameScalar(own.extent, axis.extent) ? own : axis;
}

/** `IF Manual <predicate>:`, and `ELSE:` where its body is not empty. */
function parseBranch(parser: ContainerParser, column: number, depth: number): IfThenElse {
  const { scanner } = parser;
  skipBlanks(scanner);
  expect(scanner, "Manual");
  const predicate = parseScalar(scanner);
  expect(scanner, ":");
  expectLineEnd(scanner);
  const then = parseScope(parser, column + indentation, depth + 1);
  const lineStart = scanner.position;
  skipBlanks(scanner);
  if (scanner.position - lineStart !== column || !take(scanner, "ELSE")) {
    scanner.position = lineStart;
    return { kind: "IfThenElse", predicate, then, else: [] };
  }
  expect(scanner, ":");
  expectLineEnd(scanner);
  return { kind: "IfThenElse", predicate, then, else: parseScope(parser, column + indentation, depth + 1) };
}
