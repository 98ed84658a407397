/**
 * One statement of a container: a tensor and what is made of it, or a verb. Eras differ in verbs (`SetCurrentStream to Stream 0`,
 * `SetCurrentStream(Stream 0)`) and in blanks; all are read everywhere.
 */
import { allocationSize } from "../../ir/allocation-size.ts";
import type { Tensor } from "../../ir/domain.ts";
import { makeId } from "../../support/ids.ts";
import type { ExprId, Statement } from "../nodes.ts";
import type { ContainerParser } from "./container-parser.ts";
import { parseNamed } from "./names.ts";
import { axisPosition } from "./op-axes.ts";
import { parseAxis } from "./parse-axis.ts";
import {
  parseCommunication,
  parseEndCoalescing,
  parsePointToPoint,
  parsePost,
  parseShareMemHandles,
} from "./parse-communication.ts";
import { failAt } from "./parse-error.ts";
import { failUnknownOp, parseBinary, parseCastInParentheses, parseNamedOp, parseNegation } from "./parse-op.ts";
import { parseScalar } from "./parse-scalar.ts";
import { atTensor, parseTensor } from "./parse-tensor.ts";
import {
  expect,
  expectAcrossLines,
  expectField,
  expectNumber,
  failExpected,
  quoted,
  readWord,
  type Scanner,
  skipBlanks,
  skipSpace,
  take,
} from "./scanner.ts";
import { parseStream } from "./stream-table.ts";

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
  const { scanner } = parser;
  expectAcrossLines(scanner, "=");
  skipSpace(scanner);
  const context = { scanner, tensors: parser.tensors, names: parser.names };
  if (atTensor(scanner)) return parseBinary(context, output);
  const start = scanner.position;
  if (scanner.text.startsWith("(", start)) return parseCastInParentheses(context, output);
  if (take(scanner, "-")) return parseNegation(context, output);
  const name = readWord(scanner);
  if (name === "ALLOCATE") return parseAllocate(parser, output);
  if (name === "HirAliasSelect") return parseAliasSelect(parser, output);
  const op = parseNamedOp(context, output, name, start);
  if (op !== null) return op;
  const reason = foreign.get(name);
  if (reason !== undefined) return failUnsupported(scanner, start, name, reason);
  return name === "" ? failExpected(scanner, "an op") : failUnknownOp(scanner, start, name);
}

/** From 2026 there is a form without buffer and size, which are the tensor's. */
function parseAllocate({ scanner, tensors }: ContainerParser, output: Tensor): Statement {
  expect(scanner, "(");
  const start = scanner.position;
  const whole = take(scanner, "buffer=");
  if (whole) {
    const buffer = parseTensor(scanner, tensors);
    if (buffer !== output) {
      failAt(scanner.source, start, {
        code: "dump-contradiction",
        message: `the memory of T${output.id} is allocated for T${buffer.id}`,
        found: `buffer=T${buffer.id}`,
        expected: `buffer=T${output.id}`,
        help: "name the tensor before the = once more",
      });
    }
    expect(scanner, ",");
  }
  expectField(scanner, "mem_type");
  const memoryStart = scanner.position;
  const memory = readWord(scanner);
  if (memory !== "global" && memory !== "symmetric") failExpected(scanner, "global or symmetric", memoryStart);
  expect(scanner, ",");
  let size = null;
  if (whole) {
    expectField(scanner, "size");
    size = parseScalar(scanner);
    expect(scanner, ",");
  }
  expectField(scanner, "zero_init");
  const zeroInit = parseFlag(scanner);
  if (whole) {
    expect(scanner, ",");
    expectField(scanner, "resets_to_zero");
    const resetStart = scanner.position;
    if (parseFlag(scanner)) {
      failAt(scanner.source, resetStart, {
        code: "dump-unsupported",
        message: "memory is to be zeroed again after its use",
        expected: "resets_to_zero=false",
        help: "Braid zeroes memory where it is allocated (zero_init=true)",
      });
    }
  }
  expect(scanner, ")");
  return { kind: "Allocate", tensor: output.id, memory, size: size ?? allocationSize(output), zeroInit };
}

function parseFlag(scanner: Scanner): boolean {
  if (take(scanner, "true")) return true;
  if (!take(scanner, "false")) failExpected(scanner, "true or false");
  return false;
}

function parseAliasSelect({ scanner, tensors, names }: ContainerParser, output: Tensor): Statement {
  expect(scanner, "(");
  const input = parseTensor(scanner, tensors);
  expect(scanner, ",");
  expectField(scanner, "axis");
  const start = scanner.position;
  const axis = axisPosition(scanner, start, input, parseAxis(scanner).id, input.domain.logical);
  expect(scanner, ",");
  expectField(scanner, "index");
  const index = parseNamed(scanner, names, "a slice index");
  expect(scanner, ")");
  return { kind: "HirAliasSelect", input: input.id, output: output.id, axis, index };
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

function parseDeallocate({ scanner, tensors }: ContainerParser): Statement {
  skipBlanks(scanner);
  if (!take(scanner, "{")) failExpected(scanner, quoted("{"));
  skipSpace(scanner);
  const tensor = parseTensor(scanner, tensors).id;
  expectAcrossLines(scanner, "}");
  return { kind: "Deallocate", tensor };
}

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
