/**
 * The text of every statement of the Host IR: one row per kind for both printing and parsing. A loop or branch has a
 * row for its first line; print/print.ts and parse/scope.ts add the bodies.
 *
 * Ops have separate rows (ops/), because an op has several spellings and omits axes that follow from its output. Other
 * code handles the sections around the statements: host units, index definitions, transforms.
 */
import type { TensorId } from "../../../ir/domain.ts";
import type { Op } from "../../../ir/ops/op.ts";
import { isConstant } from "../../../ir/scalar/fold.ts";
import { constant, printOperation, printScalar, type Scalar } from "../../../ir/scalar/scalar.ts";
import { invariant, keysOf } from "../../../support/invariant.ts";
import { collectives } from "../../collectives.ts";
import type { P2PCommunication, Statement } from "../../nodes.ts";
import type { ReadContext } from "../context.ts";
import { atLineEnd, expectNumber, failExpected, readWord, skipBlanks, take } from "../text/scanner.ts";
import {
  backend,
  exprId,
  flag,
  implied,
  namedScalar,
  printTensorOf,
  scalar,
  stream,
  tensor,
  tensorList,
  word,
} from "./fields.ts";
import { type Field, type StatementRow, statementRow } from "./row.ts";
import {
  allocatedSize,
  awaited,
  buffer,
  groupId,
  kernelInputs,
  loopAxis,
  loopIndex,
  postedUnit,
  reduceOp,
  resetsToZero,
  root,
  shardFields,
  slicedAxis,
  team,
} from "./statement-fields.ts";

type HostStatement = Exclude<Statement, Op>;
type HeaderOf<K extends HostStatement["kind"]> = Omit<Extract<HostStatement, { kind: K }>, "body" | "then" | "else">;

/** A statement without its bodies. */
export type Header = { readonly [K in HostStatement["kind"]]: HeaderOf<K> }[HostStatement["kind"]];

const peerRow = statementRow<P2PCommunication>("P2PCommunication", {
  forms: ["P2PCommunication <id> (type=<type>, buffer=<buffer>, peer=<peer>[, backend=<backend>])"],
  fields: { id: exprId, type: word(["send", "recv"]), buffer: tensor, peer: namedScalar("a peer"), backend },
});

/** nvFuser ends the list with a comma and leaves the parenthesis open. */
const peers: Field<readonly P2PCommunication[]> = {
  print: (list, context) => list.map((each) => `${peerRow.print(each, context, "")},`).join(" "),
  read: (context) => {
    const { scanner } = context;
    const list: P2PCommunication[] = [];
    for (;;) {
      const start = scanner.position;
      const read = peerRow.words.get(readWord(scanner));
      if (read === undefined) scanner.position = start;
      else list.push(read(context));
      skipBlanks(scanner);
      if (read === undefined || !take(scanner, ",")) break;
      skipBlanks(scanner);
    }
    if (!take(scanner, ")") && !atLineEnd(scanner)) failExpected(scanner, '"P2PCommunication" or the end of the line');
    return list;
  },
};

const types = keysOf(collectives);

/** It begins with the name that it defines, which no reader finds by a first word (parse/scope.ts). */
const defineRow: StatementRow<HeaderOf<"Define">> = {
  print: ({ name, value }, { spelling }, indent) => {
    const text = (operand: Scalar): string => printScalar(operand, spelling);
    return `${indent}${name} = ${value.kind === "binary" ? printOperation(value, text) : text(value)};`;
  },
  words: new Map(),
  definitions: new Map(),
};

const rows: { readonly [K in HostStatement["kind"]]: StatementRow<HeaderOf<K>> } = {
  Allocate: statementRow("Allocate", {
    forms: [
      "<tensor> = ALLOCATE(<buffer>, mem_type=<memory>, size=<size>, zero_init=<zeroInit>, resets_to_zero=<resetsToZero>)",
      "<tensor> = ALLOCATE(mem_type=<memory>, zero_init=<zeroInit>)",
    ],
    fields: {
      tensor,
      memory: word(["global", "symmetric"]),
      zeroInit: flag,
      fresh: implied((_, { size }) => size === undefined),
      size: allocatedSize,
    },
    marks: { buffer, resetsToZero },
  }),
  Deallocate: statementRow("Deallocate", { forms: ["Deallocate {\n  <tensor>\n}"], fields: { tensor } }),
  GetCurrentStream: statementRow("GetCurrentStream", {
    forms: [
      "GetCurrentStream into Stream <stream>",
      { since: "2026-01", text: "Stream <stream> = GetCurrentStream()" },
    ],
    fields: { stream },
  }),
  SetCurrentStream: statementRow("SetCurrentStream", {
    forms: ["SetCurrentStream to Stream <stream>", { since: "2026-01", text: "SetCurrentStream(Stream <stream>)" }],
    fields: { stream },
  }),
  Synchronize: statementRow("Synchronize", {
    forms: ["Synchronize Stream <stream>", { since: "2026-01", text: "Synchronize(Stream <stream>)" }],
    fields: { stream },
  }),
  ForLoop: statementRow("ForLoop", {
    forms: ["FOR <index> in <iterDomain>:", "FOR <index> from <start> to <stop>[ step <step>]:"],
    fields: {
      iterDomain: loopAxis,
      index: loopIndex,
      start: { ...scalar, absent: () => constant(0) },
      stop: {
        ...scalar,
        absent: (_, { iterDomain = null }) => {
          invariant(iterDomain !== null, "a loop without an axis has a stop");
          return iterDomain.extent;
        },
      },
      step: {
        ...scalar,
        print: (step, context, loop) => (isConstant(step, 1) ? null : scalar.print(step, context, loop)),
        absent: () => constant(1),
      },
    },
  }),
  IfThenElse: statementRow("IfThenElse", { forms: ["IF Manual <predicate>:"], fields: { predicate: scalar } }),
  HirAliasSelect: statementRow("HirAliasSelect", {
    forms: ["<output>\n   = HirAliasSelect( <input>, axis = <axis>, index = <index> )"],
    fields: { output: tensor, input: tensor, axis: slicedAxis, index: namedScalar("a slice index") },
  }),
  ShardByStream: statementRow("ShardByStream", {
    forms: ["<output> = ShardByStream(<input>, stream_index = <index>)"],
    fields: { output: tensor, input: tensor, index: namedScalar("a stream index"), ...shardFields },
  }),
  Define: defineRow,
  CollectivePermute: statementRow("CollectivePermute", {
    forms: [
      "CollectivePermute <id> (team=<team>, send_peer=<sendPeer>, recv_peer=<recvPeer>, input=<input>, output=<output>, backend=<backend>)",
    ],
    fields: { id: exprId, team, sendPeer: scalar, recvPeer: scalar, input: tensor, output: tensor, backend },
  }),
  Communication: statementRow("Communication", {
    forms: [
      "Communication <id> (type=<type>, team=<team>, [root=<root>, ][op=<reduceOp>, ]input=<input>, output=<output>[, backend=<backend>])",
    ],
    fields: {
      id: exprId,
      type: word(types, `a type of communication: ${types.join(", ")}`),
      team,
      root,
      reduceOp,
      input: tensor,
      output: tensor,
      backend,
    },
  }),
  P2PCommunication: peerRow,
  StartCoalescing: statementRow("StartCoalescing", { forms: ["StartCoalescing"], fields: {} }),
  EndCoalescing: statementRow("EndCoalescing", { forms: ["EndCoalescing[ <id>]"], fields: { id: groupId } }),
  ShareMemHandles: statementRow("ShareMemHandles", {
    forms: ["ShareMemHandles(<communications>"],
    fields: { communications: peers },
  }),
  Wait: statementRow("Wait", {
    forms: ["Wait <target>", { since: "2026-01", text: "Wait(<target>)" }],
    fields: { target: awaited },
  }),
  PostOnStream: statementRow("PostOnStream", {
    forms: ["PostOnStream (<unit>, Inputs:{<inputs>}, Outputs:{<outputs>})"],
    fields: { unit: postedUnit, inputs: tensorList, outputs: tensorList },
  }),
  LaunchKernel: statementRow("LaunchKernel", {
    forms: ["LaunchKernel(\n  Group ID: <group>,\n  Inputs: {<inputs>},\n  Outputs: {<outputs>},\n)"],
    fields: {
      group: { print: String, read: ({ scanner }) => expectNumber(scanner, "the number of a kernel") },
      inputs: kernelInputs,
      outputs: { ...tensorList, print: (ids, context) => ids.map((id) => printTensorOf(id, context)).join(", ") },
    },
  }),
};

export function statementRowOf<K extends HostStatement["kind"]>(kind: K): StatementRow<HeaderOf<K>> {
  return rows[kind];
}

/** The indentation of the body of a loop or branch relative to its first line. */
export const indentation = "  ";

/** The word before the second body of a branch, which prints only if that body is not empty. */
export const elseWord = "ELSE";

type ReadHeader = (context: ReadContext) => Header;
type ReadDefinition = (context: ReadContext, tensor: TensorId) => Header;

/** By a statement's first word: parses the rest of its first line. */
export const wordReaders: ReadonlyMap<string, ReadHeader> = new Map<string, ReadHeader>(
  Object.values(rows).flatMap(({ words }) => [...words]),
);

/** By the word after `<tensor> =`: parses the rest. */
export const definitionReaders: ReadonlyMap<string, ReadDefinition> = new Map<string, ReadDefinition>(
  Object.values(rows).flatMap(({ definitions }) => [...definitions]),
);
