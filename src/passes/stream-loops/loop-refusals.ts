/**
 * Why communication is not in a loop with an op beside it: for each op that moves a tensor between devices and shares no
 * loop with an op that computes, the first rule that kept the two apart. It decides nothing: it asks the functions by
 * which stream-parallel-type decides.
 */
import type { HostProgram, PostOnStream, Statement } from "../../host/nodes.ts";
import { accessesOf, isOp } from "../../host/traverse.ts";
import type { TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { siteText } from "../../support/call-site.ts";
import { opText, tensorList } from "../op-text.ts";
import type { LoweringOptions } from "../options.ts";
import { isResharding } from "../routes/sharding.ts";
import { streamAxis } from "../../ir/stream.ts";
import { axisClasses } from "./group/axis-classes.ts";
import { fusionObstacle, groupIntoLoops, type StreamLoop } from "./group/group-loops.ts";
import { canRunBeside, type LoopMember } from "./loop-member.ts";
import { type LoopRule, loopRules } from "./loop-rules.ts";
import { loopMembers } from "./stream-parallel-type.ts";

export interface LoopRefusal {
  /** The op that moves a tensor, as text. */
  readonly op: string;
  /** The tensor that it makes. */
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
    const [team, beside] = own.peers === null ? [other.peers, own] : [own.peers, other];
    return team !== null && !canRunBeside(team, beside, tensors) ? "peers" : "path";
  };

  return body.flatMap((statement, position): readonly LoopRefusal[] => {
    if (!moves(statement) || isHidden(statement)) return [];
    const beside = neighbour(statement, body, members, moves);
    if (beside === null) return [];
    const { node, isReader } = beside;
    const other = at(body, node);
    if (!isOp(other) && other.kind !== "PostOnStream") return [];
    const rule = ruleFor(statement, members[position] ?? null, members[node] ?? null, isReader);
    const [made] = outputsIn(other);
    if (made === undefined) return [];
    // Of a chain of inserted sets, the last has the reason.
    if (rule === "stream" && isOp(other) && other.kind === "Set" && made >= before.tensors.length) return [];
    const source = at(tensors, made).origin?.source;
    return [
      {
        op: opText(statement),
        tensor: statement.output,
        beside: isOp(other) ? opText(other) : `the kernel of ${tensorList(other.outputs)}`,
        made,
        rule,
        because: loopRules[rule]({ op: statement, made, isReader, tensors }),
        source: source === undefined ? null : siteText(source),
      },
    ];
  });
}

function outputsIn(statement: Op | PostOnStream): readonly TensorId[] {
  return isOp(statement) ? outputsOf(statement) : statement.outputs;
}

/** The op that reads the moved tensor, or else makes it: at best one that computes in a loop, or at least computes. */
function neighbour(
  op: Op,
  body: readonly Statement[],
  members: readonly (LoopMember | null)[],
  moves: (statement: Statement) => boolean,
): { readonly node: number; readonly isReader: boolean } | null {
  const readers = body.flatMap((other, node) =>
    other !== op && accessesOf(other).reads.includes(op.output) ? [{ node, isReader: true }] : [],
  );
  const makers = body.flatMap((other, node) =>
    accessesOf(other).writes.some((id) => op.inputs.includes(id)) ? [{ node, isReader: false }] : [],
  );
  const all = [...readers, ...makers];
  const computing = all.filter(({ node }) => !moves(at(body, node)));
  return computing.find(({ node }) => members[node] !== null) ?? computing[0] ?? all[0] ?? null;
}
