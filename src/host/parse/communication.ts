/** Statements that move data between devices, and PostOnStream. */
import type { Scalar } from "../../ir/scalar/scalar.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { makeId } from "../../support/ids.ts";
import { keysOf } from "../../support/keys-of.ts";
import {
  backendNames,
  collectives,
  reduceOpNames,
  type CommunicationType,
  type CommunicatorBackend,
  type ReduceOpType,
} from "../collectives.ts";
import type {
  Communication,
  EndCoalescing,
  ExprId,
  P2PCommunication,
  PostOnStream,
  ShareMemHandles,
  UnitId,
} from "../nodes.ts";
import { numberGroups } from "../syntax/coalescing-numbers.ts";
import type { ContainerParser } from "../syntax/container-parser.ts";
import { parseNamed } from "../syntax/names.ts";
import { failAt } from "../syntax/parse-error.ts";
import { failNumber, parseTensor, parseTensorList } from "../syntax/tensor.ts";
import {
  atLineEnd,
  expect,
  expectField,
  expectNumber,
  failExpected,
  isDigit,
  peek,
  readWord,
  type Scanner,
  skipBlanks,
  take,
} from "../syntax/scanner.ts";
import { largestNumber } from "../syntax/tensor-table.ts";

const types: ReadonlyMap<string, CommunicationType> = new Map(keysOf(collectives).map((type) => [type, type]));

const backends: ReadonlyMap<string, CommunicatorBackend> = new Map(
  keysOf(backendNames).map((backend) => [backendNames[backend], backend]),
);

/** nvFuser prints no reduction; Braid prints all but the usual one. */
const reduceOps: ReadonlyMap<string, ReduceOpType> = new Map(
  keysOf(reduceOpNames).map((reduceOp) => [reduceOpNames[reduceOp], reduceOp]),
);

/** `Communication 39 (type=Allgather, team=(0 1), input=<T>, output=<T>, backend=NCCL)`; `root=` before `input=` for rooted types. */
export function parseCommunication(parser: ContainerParser): Communication {
  const { scanner, tensors, names } = parser;
  const id = parseNumber(parser);
  expect(scanner, "(");
  expectField(scanner, "type");
  const type = oneOf(scanner, types, "a type of communication");
  expect(scanner, ",");
  expectField(scanner, "team");
  const team = parseTeam(scanner);
  expect(scanner, ",");
  let root: Scalar | null = null;
  let reduceOp: ReduceOpType | null = collectives[type].reduces ? "sum" : null;
  for (;;) {
    if (take(scanner, "root=")) {
      const start = scanner.position;
      root = positionInTeam(parser, start, parseNamed(scanner, names, "a root"), team);
    } else if (take(scanner, "op=")) reduceOp = oneOf(scanner, reduceOps, "a reduction");
    else break;
    expect(scanner, ",");
  }
  expectField(scanner, "input");
  const input = parseTensor(scanner, tensors).id;
  expect(scanner, ",");
  expectField(scanner, "output");
  const output = parseTensor(scanner, tensors).id;
  const backend = parseBackend(scanner);
  return { kind: "Communication", id, type, team, root, reduceOp, input, output, backend };
}

/** Before 2026 a constant root is a device id. A root that loops over the devices counts the team in every era. */
function positionInTeam(
  { scanner, rootsAreDevices }: ContainerParser,
  start: number,
  root: Scalar,
  team: readonly number[],
): Scalar {
  if (!rootsAreDevices || root.kind !== "constant") return root;
  const position = team.indexOf(root.value);
  if (position >= 0) return position === root.value ? root : constant(position);
  return failAt(scanner.source, start, {
    code: "dump-contradiction",
    message: "the root of a communication is not in its team",
    found: `device ${root.value}`,
    expected: `one of the devices ${team.join(", ")}`,
    help: 'before 2026 dumps print the root\'s device id; pass { roots: "positions" } (--roots positions) if this one counts the team',
  });
}

/** `P2PCommunication 37 (type=recv, buffer=<T>, peer=i84, backend=CUDA)` */
export function parsePointToPoint(parser: ContainerParser): P2PCommunication {
  const { scanner, tensors, names } = parser;
  const id = parseNumber(parser);
  expect(scanner, "(");
  expectField(scanner, "type");
  const typeStart = scanner.position;
  const type = readWord(scanner);
  if (type !== "send" && type !== "recv") failExpected(scanner, "send or recv", typeStart);
  expect(scanner, ",");
  expectField(scanner, "buffer");
  const buffer = parseTensor(scanner, tensors).id;
  expect(scanner, ",");
  expectField(scanner, "peer");
  const peer = parseNamed(scanner, names, "a peer");
  const backend = parseBackend(scanner);
  return { kind: "P2PCommunication", id, type, buffer, peer, backend };
}

/** nvFuser ends the list with a comma and the end of the line, and leaves the parenthesis open. */
export function parseShareMemHandles(parser: ContainerParser): ShareMemHandles {
  const { scanner } = parser;
  expect(scanner, "(");
  const communications: P2PCommunication[] = [];
  while (take(scanner, "P2PCommunication")) {
    communications.push(parsePointToPoint(parser));
    skipBlanks(scanner);
    if (!take(scanner, ",")) break;
    skipBlanks(scanner);
  }
  if (!take(scanner, ")") && !atLineEnd(scanner)) failExpected(scanner, '"P2PCommunication" or the end of the line');
  return { kind: "ShareMemHandles", communications };
}

/** Without a number before 2025-06. */
export function parseEndCoalescing(parser: ContainerParser): EndCoalescing {
  const { scanner } = parser;
  const end = scanner.position;
  skipBlanks(scanner);
  if (isDigit(peek(scanner))) return { kind: "EndCoalescing", id: parseNumber(parser) };
  parser.groupNumbers ??= numberGroups(scanner.source);
  const number = parser.groupNumbers.get(end);
  if (number === undefined) failExpected(scanner, "the number of the group");
  parser.exprCount = Math.max(parser.exprCount, number + 1);
  return { kind: "EndCoalescing", id: makeId<ExprId>(number) };
}

/** `PostOnStream (HostUnit0, Inputs:{<T>, }, Outputs:{<T>, })` */
export function parsePost({ scanner, tensors, posted }: ContainerParser): PostOnStream {
  expect(scanner, "(");
  const start = scanner.position;
  if (!take(scanner, "HostUnit")) failExpected(scanner, '"HostUnit" and its number');
  const number = expectNumber(scanner, "the number of a host unit");
  if (number > largestNumber) failNumber(scanner, start, `HostUnit${number}`);
  if (!posted.has(number)) posted.set(number, start);
  expect(scanner, ",");
  expect(scanner, "Inputs:{");
  const inputs = parseTensorList(scanner, tensors, "}");
  expect(scanner, ",");
  expect(scanner, "Outputs:{");
  const outputs = parseTensorList(scanner, tensors, "}");
  expect(scanner, ")");
  return { kind: "PostOnStream", unit: makeId<UnitId>(number), inputs, outputs };
}

function parseNumber(parser: ContainerParser): ExprId {
  const { scanner } = parser;
  skipBlanks(scanner);
  const number = expectNumber(scanner, "the number of the communication");
  parser.exprCount = Math.max(parser.exprCount, number + 1);
  return makeId<ExprId>(number);
}

/** `(0 1 2)` */
function parseTeam(scanner: Scanner): readonly number[] {
  expect(scanner, "(");
  const team: number[] = [];
  while (!take(scanner, ")")) {
    team.push(expectNumber(scanner, 'a device id or ")"'));
    skipBlanks(scanner);
  }
  return team;
}

function parseBackend(scanner: Scanner): CommunicatorBackend {
  expect(scanner, ",");
  expectField(scanner, "backend");
  const backend = oneOf(scanner, backends, "a communicator backend");
  expect(scanner, ")");
  return backend;
}

function oneOf<T>(scanner: Scanner, values: ReadonlyMap<string, T>, what: string): T {
  const start = scanner.position;
  const value = values.get(readWord(scanner));
  return value ?? failExpected(scanner, `${what}: ${[...values.keys()].join(", ")}`, start);
}
