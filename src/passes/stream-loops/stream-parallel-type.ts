/**
 * Turns Stream axes into host loops whose iterations run on alternating streams.
 *
 *   T1[iStreamIdx{i0}, i1] = Set(T0)
 * becomes
 *   T1 = ALLOCATE(...)
 *   GetCurrentStream into Stream 0
 *   FOR streamIdx: SetCurrentStream to Stream (streamIdx % numberOfStreams); Synchronize Stream 0
 *   FOR streamIdx:
 *     SetCurrentStream to Stream (streamIdx % numberOfStreams)
 *     T2 = select T0; T3 = select T1; T3 = Set(T2)
 *     SetCurrentStream to Stream 0; Synchronize Stream (streamIdx % numberOfStreams)
 *
 * point-to-point-form.ts recognises exchanges with peers, group/ decides which ops share a loop, emit/ writes its
 * statements. Source: nvFuser's StreamParallelType.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import type { Op } from "../../ir/ops/op.ts";
import type { Tensor } from "../../ir/domain.ts";
import type { HostProgram, PostOnStream, Statement } from "../../host/nodes.ts";
import { accessesOf, isOp } from "../../host/traverse.ts";
import { at } from "../../support/invariant.ts";
import { opPlace } from "../op-text.ts";
import type { LoweringOptions } from "../options.ts";
import type { Pass } from "../pass.ts";
import type { LoopEdit } from "./emit/loop-context.ts";
import { emitLoop } from "./emit/stream-loop.ts";
import { groupIntoLoops, type StreamLoop } from "./group/group-loops.ts";
import { type LoopMember, loopMember } from "./loop-member.ts";
import { loopedAxis, requireSlicedInputs } from "./looped-axis.ts";
import { type PointToPointForm, pointToPointForm } from "./point-to-point-form.ts";

export const streamParallelType: Pass<"segmented", "looped"> = {
  name: "stream-parallel-type",
  from: "segmented",
  to: "looped",
  run: (program, { rank, options }) => {
    const members = program.body.map((statement) => memberOf(statement, program.tensors, options));
    requireSlicedInputs(program, members);
    const groups = groupIntoLoops(program, members).flatMap((group) => ofRank(group, program.tensors, rank) ?? []);
    if (groups.length === program.body.length && groups.every((group, i) => group === program.body[i])) {
      return program;
    }
    const edit: LoopEdit = {
      tensors: [...program.tensors],
      streams: [...program.streams],
      iterDomainCount: program.iterDomainCount,
      exprCount: program.exprCount,
    };
    const body = groups.flatMap((group) =>
      group.kind === "StreamLoop" ? emitLoop(group, edit, rank, options) : [group],
    );
    return { ...program, ...edit, body } satisfies HostProgram;
  },
};

function memberOf(statement: Statement, tensors: readonly Tensor[], options: LoweringOptions): LoopMember | null {
  const stream = loopedAxis(statement, tensors, options);
  if (stream === null || !isOp(statement)) return null;
  const form = pointToPointForm(statement, stream, tensors);
  if (form !== null && options.p2p !== "broadcast") requireExchange(statement, form, options);
  return loopMember(statement, stream, form, options.p2p !== "broadcast", tensors);
}

/**
 * A reduction needs exchange-reductions. UCC neither coalesces sends and receives nor reaches peers' memory: its
 * exchanges would deadlock.
 */
function requireExchange(op: Op, form: PointToPointForm, { backend, p2p }: LoweringOptions): void {
  if (form.kind === "reduce") {
    fail({
      code: "point-to-point-unsupported",
      message: "sends and receives cannot reduce",
      place: opPlace(op),
      found: `a reduction of the ${form.type} axis with p2p ${p2p} (--p2p)`,
      expected: "a set of the shards and a local reduction, or p2p broadcast",
      help: 'first run the pass exchange-reductions, or set p2p to "broadcast" (--p2p broadcast)',
    });
  }
  if (backend !== "ucc") return;
  fail({
    code: "point-to-point-unsupported",
    message: "the ucc backend has no point-to-point schedule",
    place: opPlace(op),
    found: `p2p ${p2p} (--p2p) with backend ucc (--backend)`,
    expected: "p2p broadcast, or backend nccl or cuda",
    help: 'set p2p to "broadcast" (--p2p broadcast), or use another backend',
  });
}

/**
 * The statement or loop without the ops that have no tensor on the rank; null if none remains. Ops are grouped first,
 * so that all ranks have the same loops and post their communications in the same order.
 */
function ofRank(
  group: Statement | StreamLoop,
  tensors: readonly Tensor[],
  rank: number,
): Statement | StreamLoop | null {
  if (group.kind === "StreamLoop") {
    const members = group.members.filter(({ op }) => runsOn(op, tensors, rank));
    if (members.length === group.members.length) return group;
    return members.length === 0 ? null : { ...group, members };
  }
  return !(isOp(group) || group.kind === "PostOnStream") || runsOn(group, tensors, rank) ? group : null;
}

function runsOn(statement: Op | PostOnStream, tensors: readonly Tensor[], rank: number): boolean {
  const { reads, writes } = accessesOf(statement);
  return [...reads, ...writes].some((id) => {
    const { mesh } = at(tensors, id);
    return mesh === null || mesh.has(rank);
  });
}
