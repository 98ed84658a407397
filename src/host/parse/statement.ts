/**
 * One statement of a container: a tensor and what is made of it, or a verb. Eras differ in verbs (`SetCurrentStream to Stream 0`,
 * `SetCurrentStream(Stream 0)`) and in blanks; all are read everywhere.
 */
import type { Tensor } from "../../ir/domain.ts";
import { makeId } from "../../support/ids.ts";
import type { ExprId, Statement } from "../nodes.ts";
import type { ContainerParser } from "../syntax/container-parser.ts";
import {
  parseCommunication,
  parseEndCoalescing,
  parsePointToPoint,
  parsePost,
  parseShareMemHandles,
} from "./communication.ts";
import { failAt } from "../syntax/parse-error.ts";
import { parseAliasSelect, parseAllocate, parseDeallocate } from "./memory.ts";
import { failUnknownOp, parseComputed } from "./ops/parse-op.ts";
import { atTensor, parseTensor } from "../syntax/tensor.ts";
import {
  expect,
  expectNumber,
  failExpected,
  quoted,
  readWord,
  type Scanner,
  skipBlanks,
  take,
} from "../syntax/scanner.ts";
import { parseStream } from "../syntax/stream-table.ts";

/** A statement that is no loop and no branch: those have scopes (parse-scope.ts). */
export function parseStatement(parser: ContainerParser): Statement {
  const { scanner } = parser;
  if (atTensor(scanner)) return parseDefined(parser, parseTensor(scanner, parser.tensors));
  const start = scanner.position;
  const word = readWord(scanner);
  const reader = verbs.get(word);
  if (reader !== undefined) return reader(parser, start);
  const reason = foreign.get(word);
  if (reason === undefined) failExpected(scanner, "a statement of the Host IR", start);
  return failUnsupported(scanner, start, word, reason);
}

function failUnsupported(scanner: Scanner, start: number, word: string, reason: string): never {
  return failAt(scanner.source, start, {
    code: "dump-unsupported",
    message: `${word} ${reason}`,
    found: quoted(word),
    expected: "statements of nvFuser's MultiDeviceExecutor path",
    help: "dump the program of a MultiDeviceExecutor (NVFUSER_DUMP=host_ir)",
  });
}

/** What only nvFuser's FusionExecutorCache path emits. */
const foreign: ReadonlyMap<string, string> = new Map([
  ["LaunchKernel", "runs a kernel that the dump does not print"],
  ["CollectivePermute", "is of nvFuser's FusionExecutorCache path"],
  ["ShardByStream", "is of nvFuser's FusionExecutorCache path"],
  ["SymmetricContiguousView", "is of nvFuser's symmetric-memory collectives, which hide the accesses of peers"],
  ["Dispatch", "moves tokens by counts that are known only at run time"],
  ["Combine", "moves tokens by counts that are known only at run time"],
  ["MoeDispatch", "moves tokens by counts that are known only at run time"],
  ["MoeCombine", "moves tokens by counts that are known only at run time"],
]);

type StatementReader = (parser: ContainerParser, start: number) => Statement;

/** `<T> = ...`: on the same line for memory, on the next for views and computations. */
function parseDefined(parser: ContainerParser, output: Tensor): Statement {
  const { scanner, tensors, names } = parser;
  return parseComputed<Statement>({ scanner, tensors, names }, output, (name, start) => {
    if (name === "ALLOCATE") return parseAllocate(parser, output);
    if (name === "HirAliasSelect") return parseAliasSelect(parser, output);
    const reason = foreign.get(name);
    return reason === undefined ? failUnknownOp(scanner, start, name) : failUnsupported(scanner, start, name, reason);
  });
}

/** `verb Stream 0`, `verb to Stream 0` or `verb(Stream 0)`. */
function streamVerb(
  kind: "GetCurrentStream" | "SetCurrentStream" | "Synchronize",
  preposition: string,
): StatementReader {
  return ({ scanner, streams }) => {
    skipBlanks(scanner);
    const parenthesis = take(scanner, "(");
    if (!parenthesis && preposition !== "") expect(scanner, preposition);
    const stream = parseStream(scanner, streams);
    if (parenthesis) expect(scanner, ")");
    return { kind, stream };
  };
}

/** `Stream 0x174e5c80 = GetCurrentStream()` */
function parseCurrentStream({ scanner, streams }: ContainerParser, start: number): Statement {
  scanner.position = start;
  const stream = parseStream(scanner, streams);
  expect(scanner, "=");
  expect(scanner, "GetCurrentStream");
  expect(scanner, "(");
  expect(scanner, ")");
  return { kind: "GetCurrentStream", stream };
}

/** `Wait Communication 39`, whatever 39 is; `Wait(Communication 39)`. */
function parseWait({ scanner }: ContainerParser): Statement {
  skipBlanks(scanner);
  const parenthesis = take(scanner, "(");
  const start = scanner.position;
  if (!awaitable.has(readWord(scanner))) failExpected(scanner, '"Communication" and a number', start);
  skipBlanks(scanner);
  const target = makeId<ExprId>(expectNumber(scanner, "the number of a communication"));
  if (parenthesis) expect(scanner, ")");
  return { kind: "Wait", target };
}

const awaitable: ReadonlySet<string> = new Set(["Communication", "P2PCommunication", "EndCoalescing"]);

const verbs: ReadonlyMap<string, StatementReader> = new Map<string, StatementReader>([
  ["GetCurrentStream", streamVerb("GetCurrentStream", "into")],
  ["SetCurrentStream", streamVerb("SetCurrentStream", "to")],
  ["Synchronize", streamVerb("Synchronize", "")],
  ["Stream", parseCurrentStream],
  ["Wait", parseWait],
  ["Communication", parseCommunication],
  ["P2PCommunication", parsePointToPoint],
  ["ShareMemHandles", parseShareMemHandles],
  ["StartCoalescing", () => ({ kind: "StartCoalescing" })],
  ["EndCoalescing", parseEndCoalescing],
  ["PostOnStream", parsePost],
  ["Deallocate", parseDeallocate],
]);
