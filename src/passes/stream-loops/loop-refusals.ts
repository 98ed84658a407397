/**
 * Why communication is not in a loop with an op beside it: for each op that moves a tensor between devices and shares no
 * loop with an op that computes, the first rule that kept the two apart. It decides nothing: it asks the functions by
 * which stream-parallel-type decides.
 */
import type { HostProgram, PostOnStream, Statement } from "../../host/nodes.ts";
import { statementAccess, isOp } from "../../host/traverse.ts";
import { type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import { shardsOf } from "../../ir/shards.ts";
import { streamAxis, streamPart } from "../../ir/stream.ts";
import { siteText } from "../../support/call-site.ts";
import { at } from "../../support/invariant.ts";
import { axisText, opText, tensorListText } from "../op-text.ts";
import type { LoweringOptions } from "../options.ts";
import { isResharding } from "../routes/layouts.ts";
import { axisClasses } from "./group/axis-classes.ts";
import { fusionObstacle, type FusionObstacle, groupIntoLoops, type StreamLoop } from "./group/group-loops.ts";
import { canRunBeside, type LoopMember } from "./loop-member.ts";
import { loopMembers } from "./stream-parallel-type.ts";

export interface LoopRefusal {
  /** The op that moves a tensor, as text. */
  readonly op: string;
  /** The tensor that it moves, and the one that it makes. */
  readonly from: TensorId;
  readonly tensor: TensorId;
  /** The op beside it, which could hide the communication. */
  readonly beside: string;
  /** The first tensor that the op beside it makes. */
  readonly made: TensorId;
  readonly rule: LoopRule;
  readonly because: string;
  /** Where the program makes the tensor of the op beside it; null if that is not known. */
  readonly source: string | null;
}

/** `segmented` is the program that stream-parallel-type gets, `before` the Fusion as the user wrote it. */
export function loopRefusals(
  segmented: HostProgram,
  before: FusionData,
  options: LoweringOptions,
): readonly LoopRefusal[] {
  const { body, tensors } = segmented;
  const members = loopMembers(segmented, options);
  const classes = axisClasses(segmented);
  const moves = (statement: Statement): statement is Op => isOp(statement) && isResharding(statement, tensors);
  const loopOf = new Map<Statement, StreamLoop>();
  for (const group of groupIntoLoops(segmented, members)) {
    if (group.kind !== "StreamLoop") continue;
    for (const { statement } of group.members) loopOf.set(statement, group);
  }
  const touching = touchingIn(body);
  const isHidden = (op: Op): boolean => !(loopOf.get(op)?.members.every(({ statement }) => moves(statement)) ?? true);
  const hadStreams = before.tensors.some((tensor) => streamAxis(tensor) !== null);
  const isUsers = (id: TensorId): boolean => (before.tensors[id]?.mesh ?? null) !== null;
  const isCopy = (statement: Statement): statement is Op =>
    isOp(statement) && statement.kind === "Set" && statement.output >= before.tensors.length;
  const copied = new Map(body.filter(isCopy).map((op) => [op.output, at(op.inputs, 0)]));
  const written = (id: TensorId): TensorId => {
    const source = copied.get(id);
    return source === undefined ? id : written(source);
  };
  // All copies of a tensor have one name.
  const asWritten = (text: string): string =>
    [...copied.keys()].reduce((all, id) => all.replaceAll(new RegExp(`\\bT${id}\\b`, "gu"), `T${written(id)}`), text);

  const ruleFor = (op: Op, own: LoopMember | null, other: LoopMember | null, isReader: boolean): LoopRule => {
    if (!options.overlap && hadStreams) return "overlap";
    if (other === null) return own === null ? "stream" : "neighbour";
    if (own === null) {
      const operand = isReader ? other.inputs.indexOf(op.output) : -1;
      if (operand >= 0 && other.form === null && (other.read[operand] ?? null) === null) return "whole";
      return isUsers(op.output) ? "annotated" : "inserted";
    }
    if (loopOf.get(op) === loopOf.get(other.statement)) return "alone";
    const obstacle = isReader ? fusionObstacle(own, other, classes) : fusionObstacle(other, own, classes);
    if (obstacle !== null) return obstacle;
    // The team of a loop is often that of another of its ops.
    const theirs = loopOf.get(other.statement)?.peers ?? null;
    const [team, beside] = theirs === null ? [loopOf.get(op)?.peers ?? null, other] : [theirs, own];
    return team !== null && !canRunBeside(team, beside, tensors) ? "peers" : "path";
  };

  return body.flatMap((statement, position): readonly LoopRefusal[] => {
    if (!moves(statement) || isHidden(statement)) return [];
    const beside = neighbour(statement, body, touching, members, moves);
    if (beside === null) return [];
    const { node, isReader } = beside;
    const other = at(body, node);
    if (!isOp(other) && other.kind !== "PostOnStream") return [];
    const rule = ruleFor(statement, members[position] ?? null, members[node] ?? null, isReader);
    // Of a chain of inserted sets, the last has the reason.
    if (rule === "stream" && isCopy(other)) return [];
    const reader = isReader ? readerOfCopies(other, body, touching, isCopy) : other;
    const [made] = isOp(reader) ? outputsOf(reader) : reader.outputs;
    if (made === undefined) return [];
    const because = loopRules[rule]({
      op: statement,
      made,
      isReader,
      tensors,
      reader: isOp(reader) ? reader : null,
      written,
    });
    const moved = opText({ ...statement, inputs: statement.inputs.map(written) });
    const source = at(tensors, made).origin?.source;
    return [
      {
        op: moved,
        from: at(statement.inputs, 0),
        tensor: statement.output,
        beside: isOp(reader) ? asWritten(opText(reader)) : `the kernel of ${tensorListText(reader.outputs)}`,
        made,
        rule,
        because: made === written(statement.output) ? because : asWritten(because),
        source: source === undefined ? null : siteText(source),
      },
    ];
  });
}

/** By tensor: the statements that read it, and those that write it, in order. */
interface Touching {
  readonly readers: ReadonlyMap<TensorId, ReadonlySet<number>>;
  readonly writers: ReadonlyMap<TensorId, ReadonlySet<number>>;
}

function touchingIn(body: readonly Statement[]): Touching {
  const [readers, writers] = [new Map<TensorId, Set<number>>(), new Map<TensorId, Set<number>>()];
  const add = (lists: Map<TensorId, Set<number>>, id: TensorId, node: number): void => {
    lists.set(id, (lists.get(id) ?? new Set()).add(node));
  };
  for (const [node, statement] of body.entries()) {
    const { reads, writes } = statementAccess(statement);
    for (const id of reads) add(readers, id, node);
    for (const id of writes) add(writers, id, node);
  }
  return { readers, writers };
}

/** The op that reads the moved tensor, or else makes it: at best one that computes in a loop, or at least computes. */
function neighbour(
  op: Op,
  body: readonly Statement[],
  { readers, writers }: Touching,
  members: readonly (LoopMember | null)[],
  moves: (statement: Statement) => boolean,
): { readonly node: number; readonly isReader: boolean } | null {
  const makers = new Set(op.inputs.flatMap((id) => [...(writers.get(id) ?? [])]));
  const all = [
    ...[...(readers.get(op.output) ?? [])]
      .filter((node) => body[node] !== op)
      .map((node) => ({ node, isReader: true })),
    ...[...makers].toSorted((a, b) => a - b).map((node) => ({ node, isReader: false })),
  ];
  const computing = all.filter(({ node }) => !moves(at(body, node)));
  return computing.find(({ node }) => members[node] !== null) ?? computing[0] ?? all[0] ?? null;
}

/** What reads a copy that lowering inserted, after all that are copies of it. */
function readerOfCopies(
  first: Op | PostOnStream,
  body: readonly Statement[],
  { readers }: Touching,
  isCopy: (statement: Statement) => statement is Op,
): Op | PostOnStream {
  if (!isCopy(first)) return first;
  const next = [...(readers.get(first.output) ?? [])]
    .map((node) => at(body, node))
    .find((each) => each !== first && (isOp(each) || each.kind === "PostOnStream"));
  return next === undefined || !(isOp(next) || next.kind === "PostOnStream")
    ? first
    : readerOfCopies(next, body, { readers, writers: new Map() }, isCopy);
}

// The rules that keep communication out of a loop, each with the reason that users read.

/**
 * overlap: Stream axes are ignored. stream: neither op has one. neighbour: only the communication has one. annotated:
 * the user placed the moved tensor without one. whole: the loop beside it reads the tensor whole. inserted: the
 * compiler moves the tensor without one, as where a chunk is no run of what a device has. axis, extent, chunks,
 * overwrites, otherChunk: both have one, and do not fit. peers: an exchange in the loop has devices at different chunks.
 * alone: they share a loop in which nothing computes. path: an op outside of the loop is between the two.
 */
export type LoopRule =
  "overlap" | "stream" | "neighbour" | "annotated" | "whole" | "inserted" | FusionObstacle | "peers" | "alone" | "path";

interface RuleContext {
  /** The op that moves a tensor. */
  readonly op: Op;
  /** The op beside it; null for a kernel of several. */
  readonly reader: Op | null;
  /** The first output of the op beside it. */
  readonly made: TensorId;
  /** Whether the op beside it reads the moved tensor; otherwise it makes the tensor that moves. */
  readonly isReader: boolean;
  readonly tensors: readonly Tensor[];
  /** The tensor that a copy, which lowering inserted, is one of. */
  readonly written: (id: TensorId) => TensorId;
}

export const loopRules: { readonly [R in LoopRule]: (context: RuleContext) => string } = {
  overlap: () => "the option overlap is off, so Stream axes are ignored",
  stream: ({ made }) => `T${made} has no Stream axis`,
  neighbour: (context) => `T${context.op.output} has Stream, and T${context.made} has not${neighbourFix(context)}`,
  annotated: ({ op, made }) => `T${op.output} is annotated without Stream, and T${made} with it`,
  whole: ({ op, made, tensors }) =>
    `the loop over ${streamText(at(tensors, made))} reads all of T${op.output} in each iteration`,
  inserted: (context) =>
    `the compiler moves T${context.op.output} as a whole, not by chunks of ${streamText(at(context.tensors, context.made))}${insertedFix(context)}`,
  axis: ({ op, made, tensors }) =>
    `${streamText(at(tensors, op.output))} and ${streamText(at(tensors, made))} have different indices`,
  extent: ({ op, made, tensors }) =>
    `${streamText(at(tensors, op.output))} and ${streamText(at(tensors, made))} have different extents`,
  chunks: ({ op, made, tensors }) =>
    `${streamText(at(tensors, op.output))} and ${streamText(at(tensors, made))} are cut into different chunks`,
  overwrites: ({ op, made }) => `T${op.output} or T${made} overwrites a tensor that the loop uses`,
  otherChunk: ({ op, made, isReader, tensors }) =>
    isReader
      ? `an iteration over ${streamText(at(tensors, made))} needs more of T${op.output} than its own chunk`
      : `an iteration over ${streamText(at(tensors, op.output))} needs more of T${made} than its own chunk`,
  peers: ({ op, made }) =>
    `devices exchange chunks in turn, and T${op.output} and T${made} would need them at the same chunk`,
  alone: ({ op, made }) => `the loop of T${op.output} and T${made} has no op that computes`,
  path: ({ op, made }) => `an op outside of the loop is on a path between T${op.output} and T${made}`,
};

/** What gives the op that reads the moved tensor a loop, too. */
function neighbourFix({ op, made, isReader, reader, tensors, written }: RuleContext): string {
  const moved = at(tensors, op.output);
  const axis = logicalPosition(moved);
  const operand = reader?.inputs.find((id) => written(id) === written(op.output));
  if (!isReader || reader === null || operand === undefined || axis === null) return "";
  const own = withoutReductions(at(tensors, operand).domain.logical)[axis];
  const pair = axisMap(reader, tensors).find(({ producer }) => producer.id === own?.id);
  if (pair === undefined) return "";
  return pair.consumer.iterType === "reduction"
    ? `, because the op sums over that axis: put Stream on another axis of T${moved.id}`
    : `: put Stream on the same axis of T${made}`;
}

/** An iteration of one index of an axis that is cut over devices: a device has a run of them. */
function insertedFix({ op, made, tensors }: RuleContext): string {
  const stream = streamPart(at(tensors, made));
  const axis = logicalPosition(at(tensors, made));
  const moved = at(tensors, at(op.inputs, 0));
  const own = axis === null ? undefined : withoutReductions(moved.domain.logical)[axis];
  const isCut = own !== undefined && shardsOf(moved).some((shard) => shard.axis.id === own.id);
  if (stream === null || stream.chunks !== null || !isCut) return "";
  return `, of one index each: call T${made}.outerSplit(${axis}, chunks) and put Stream on the chunks`;
}

/** Of the axis with Stream, among those that exist at run time. */
function logicalPosition(tensor: Tensor): number | null {
  const axis = streamPart(tensor)?.axis;
  const position = withoutReductions(tensor.domain.logical).findIndex(({ id }) => id === axis?.id);
  return position < 0 ? null : position;
}

/** `axis 0 of T2 (Stream)`. */
function streamText(tensor: Tensor): string {
  const axis = streamAxis(tensor);
  return axis === null ? `T${tensor.id}` : axisText(tensor, axis);
}
