/**
 * Scopes in dump text: as in Python, the body of a loop or branch is indented further than its first line, and ends
 * before the first line that is not.
 */
import type { Op } from "../../ir/ops/op.ts";
import type { Statement } from "../nodes.ts";
import type { ReadContext } from "../syntax/context.ts";
import { failAt } from "../syntax/text/source.ts";
import {
  expect,
  expectLineEnd,
  failExpected,
  quotedLiteral,
  readWord,
  type DumpScanner,
  skipBlanks,
  take,
} from "../syntax/text/scanner.ts";
import { definitionReaders, elseWord, type Header, indentation, wordReaders } from "../syntax/statements/statements.ts";
import type { Tensor } from "../../ir/domain.ts";
import { knownLeaf } from "../syntax/values/names.ts";
import { isNumberedName, parseDefinition } from "../syntax/values/scalar.ts";
import { atTensor } from "../syntax/values/tensor.ts";
import { failUnknownOp, parseComputed, parseOutputs } from "../syntax/ops/ops.ts";

export interface ScopeContext extends ReadContext {
  /** The indices of the loops around the statement and the values defined before it, also in `names`. */
  readonly loops: string[];
  /** The indices of all loops so far. */
  readonly loopNames: Set<string>;
  /** The line of the file in which each statement begins. */
  readonly lines: Map<Statement, number>;
  /** The position up to which lines have been counted. */
  readonly counted: { position: number; index: number };
}

/** More than host programs nest. The limit bounds the stack. */
const deepest = 64;

/**
 * The statements from here on that begin in `column`. The scanner stops at the first line that begins in another
 * column.
 */
export function parseScope(context: ScopeContext, column: number, depth: number): readonly Statement[] {
  const { scanner } = context;
  const statements: Statement[] = [];
  const outer = context.loops.length;
  while (enterLine(scanner, column)) {
    const line = currentLine(context);
    const start = scanner.position;
    const header = parseStatement(context);
    expectLineEnd(scanner);
    if (depth >= deepest && (header.kind === "ForLoop" || header.kind === "IfThenElse")) failDepth(scanner, start);
    const statement = withBodies(context, header, column + indentation.length, depth + 1);
    if (statement.kind === "Define") {
      context.loops.push(statement.name);
      context.loopNames.add(statement.name);
    }
    context.lines.set(statement, line);
    statements.push(statement);
  }
  context.loops.length = outer;
  return statements;
}

/**
 * The column of the body of a container whose header begins in `column`: the first statement's, if the header was
 * copied without the blanks before it.
 */
export function bodyColumn({ text, position }: DumpScanner, column: number): number {
  const [, blanks = "", sign] = /^\s*?\n([^\S\n]*)(\S)/u.exec(text.slice(position, position + 400)) ?? [];
  return Math.max(column + indentation.length, sign === "}" ? 0 : blanks.length);
}

/** The line of the file at the scanner's position, which must not have gone back since the last call. */
function currentLine({ scanner, counted }: ScopeContext): number {
  const { source, text, position } = scanner;
  for (let end = text.indexOf("\n", counted.position); end >= 0 && end < position;) {
    counted.position = end + 1;
    counted.index++;
    end = text.indexOf("\n", counted.position);
  }
  return source.lines?.[counted.index] ?? source.firstLine + counted.index;
}

/**
 * Whether the next line with text belongs to the scope. If so, the scanner moves to its first word, otherwise to its
 * beginning.
 */
function enterLine(scanner: DumpScanner, column: number): boolean {
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
  if (own === column && scanner.position < text.length && !text.startsWith(elseWord, scanner.position)) return true;
  if (own > column) {
    failAt(scanner.source, scanner.position, "dump-syntax", "a line is indented too far", {
      found: `${own} blanks`,
      expected: `${column} spaces, or fewer after the end of a loop or branch`,
      help: "indent the bodies of FOR, IF and ELSE by two spaces",
    });
  }
  scanner.position = lineStart;
  return false;
}

function failDepth({ source }: DumpScanner, position: number): never {
  failAt(source, position, "dump-unsupported", "loops and branches are nested too deeply", {
    found: `more than ${deepest} levels`,
    expected: `at most ${deepest}`,
    help: "pass the dump of a host program",
  });
}

/** The statement with the bodies that follow its first line, which begin in `column`. */
function withBodies(context: ScopeContext, header: Op | Header, column: number, depth: number): Statement {
  if (header.kind === "ForLoop") {
    const { name } = header.index;
    context.loops.push(name);
    context.loopNames.add(name);
    const body = parseScope(context, column, depth);
    context.loops.pop();
    return { ...header, body };
  }
  if (header.kind === "IfThenElse") {
    const then = parseScope(context, column, depth);
    return { ...header, then, else: takeElse(context.scanner, column) ? parseScope(context, column, depth) : [] };
  }
  return header;
}

/** Skips `ELSE:` if it is in the column of the branch's first line. */
function takeElse(scanner: DumpScanner, column: number): boolean {
  const lineStart = scanner.position;
  skipBlanks(scanner);
  if (scanner.position - lineStart === column - indentation.length && take(scanner, elseWord)) {
    expect(scanner, ":");
    expectLineEnd(scanner);
    return true;
  }
  scanner.position = lineStart;
  return false;
}

/** A statement without its bodies. */
function parseStatement(context: ReadContext): Op | Header {
  const { scanner } = context;
  if (atTensor(scanner)) return parseDefined(context, parseOutputs(context));
  const start = scanner.position;
  const word = readWord(scanner);
  const read = wordReaders.get(word);
  if (read !== undefined) return read(context);
  if (isNumberedName(word)) return parseDefine(context, word);
  const unsupported = foreign.get(word);
  if (unsupported === undefined) failExpected(scanner, "a statement of the Host IR", start);
  return failForeign(scanner, start, word, unsupported);
}

/** `i12 = 0 - i10;`: a value of the statements that follow in the scope. */
function parseDefine({ scanner, names }: ReadContext, name: string): Header {
  expect(scanner, "=");
  const value = parseDefinition(scanner, (leaf, position) => knownLeaf(scanner, names, leaf, position, "a value"));
  expect(scanner, ";");
  return { kind: "Define", name, value };
}

interface ForeignStatement {
  readonly reason: string;
  readonly help: string;
}

/** Its output is computed by nothing else, so the advice is never to omit it. */
function failForeign(scanner: DumpScanner, start: number, word: string, { reason, help }: ForeignStatement): never {
  return failAt(scanner.source, start, "dump-unsupported", `${word} ${reason}`, {
    found: quotedLiteral(word),
    expected: "statements that Braid has",
    help,
  });
}

const movesTokens: ForeignStatement = {
  reason: "moves tokens by counts that are known only at run time",
  help: "exchange fixed shares by a Communication of type AllToAll instead, and dump that program",
};

/** Statements that nvFuser prints and Braid does not support. */
const foreign: ReadonlyMap<string, ForeignStatement> = new Map([
  [
    "SymmetricContiguousView",
    {
      reason: "maps the memory of all devices, which hides the accesses of peers",
      help: "gather the tensor by a Communication of type Allgather instead, and dump that program",
    },
  ],
  ["Dispatch", movesTokens],
  ["Combine", movesTokens],
]);

/** `<T> = ...`, on the same line for allocations, on the next for views and computations. */
function parseDefined(context: ReadContext, outputs: readonly [Tensor, ...Tensor[]]): Op | Header {
  return parseComputed<Op | Header>(context, outputs, (name, start) => {
    const read = definitionReaders.get(name);
    if (read !== undefined) return read(context, outputs[0].id);
    const { scanner } = context;
    const unsupported = foreign.get(name);
    if (unsupported === undefined) return failUnknownOp(scanner, start, name);
    return failForeign(scanner, start, name, unsupported);
  });
}
