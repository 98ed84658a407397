/**
 * Why communication is not in a loop with an op beside it: for each op that moves a tensor between devices and shares no
 * loop with an op that computes, the first rule that kept the two apart. It decides nothing: it asks the functions by
 * which stream-parallel-type decides.
 */
import type { HostProgram, Statement } from "../../host/nodes.ts";
import { statementAccess, isOp } from "../../host/traverse.ts";
import type { Tensor, TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import { streamAxis } from "../../ir/stream.ts";
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
    const [made] = isOp(other) ? outputsOf(other) : other.outputs;
    if (made === undefined) return [];
    // Of a chain of inserted sets, the last has the reason.
    if (rule === "stream" && isOp(other) && other.kind === "Set" && made >= before.tensors.length) return [];
    const source = at(tensors, made).origin?.source;
    return [
      {
        op: opText(statement),
        from: at(statement.inputs, 0),
        tensor: statement.output,
        beside: isOp(other) ? opText(other) : `the kernel of ${tensorListText(other.outputs)}`,
        made,
        rule,
        because: loopRules[rule]({ op: statement, made, isReader, tensors }),
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
  /** The first output of the op beside it. */
  readonly made: TensorId;
  /** Whether the op beside it reads the moved tensor; otherwise it makes the tensor that moves. */
  readonly isReader: boolean;
  readonly tensors: readonly Tensor[];
}

export const loopRules: { readonly [R in LoopRule]: (context: RuleContext) => string } = {
  overlap: () => "the option overlap is off, so Stream axes are ignored",
  stream: ({ made }) => `T${made} has no Stream axis`,
  neighbour: ({ op, made }) => `T${op.output} has Stream, and T${made} has not`,
  annotated: ({ op, made }) => `T${op.output} is annotated without Stream, and T${made} with it`,
  whole: ({ op, made, tensors }) =>
    `the loop over ${streamText(at(tensors, made))} reads all of T${op.output} in each iteration`,
  inserted: ({ op, made, tensors }) =>
    `the compiler moves T${op.output} as a whole, not by chunks of ${streamText(at(tensors, made))}`,
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

/** `axis 0 of T2 (Stream)`. */
function streamText(tensor: Tensor): string {
  const axis = streamAxis(tensor);
  return axis === null ? `T${tensor.id}` : axisText(tensor, axis);
}
