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
 * Of an axis that is split, an iteration takes a chunk and keeps the axis (ShardByStream). A host unit runs per chunk
 * too: its ops see the chunk's extent.
 *
 * point-to-point-form.ts recognises exchanges with peers, group/ decides which ops share a loop, emit/ writes its
 * statements. Source: nvFuser's StreamParallelType.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import type { HostProgram, PostOnStream, Statement, UnitId } from "../../host/nodes.ts";
import { statementAccess, isOp, walk } from "../../host/traverse.ts";
import type { IterDomain, Tensor } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { opPlace } from "../op-text.ts";
import type { LoweringOptions } from "../options.ts";
import type { Pass, PassContext } from "../pass.ts";
import { decided } from "../rank-class.ts";
import type { LoopEdit } from "./emit/loop-context.ts";
import { emitLoop } from "./emit/stream-loop.ts";
import type { PointToPointForm } from "./forms.ts";
import { groupIntoLoops, type StreamLoop } from "./group/group-loops.ts";
import { type LoopMember, opMember, unitMember } from "./loop-member.ts";
import { loopedAxis, loopedFurtherAxis, loopedOperandAxes, requireSlicedInputs, unitAxes } from "./looped-axis.ts";
import { pointToPointForm } from "./point-to-point-form.ts";

export const streamParallelType: Pass<"segmented", "looped"> = {
  name: "stream-parallel-type",
  from: "segmented",
  to: "looped",
  run: (program, context) => {
    const { options } = context;
    const groups = streamLoopsOf(program, options).flatMap((group) => ofRank(group, program.tensors, context) ?? []);
    if (groups.length === program.body.length && groups.every((group, i) => group === program.body[i])) {
      return program;
    }
    const edit: LoopEdit = {
      tensors: [...program.tensors],
      streams: [...program.streams],
      units: [...program.units],
      shared: unitsPostedTwice(program.body),
      scalarCount: program.scalarCount,
      iterDomainCount: program.iterDomainCount,
      exprCount: program.exprCount,
    };
    const body = groups.flatMap((group) => (group.kind === "StreamLoop" ? emitLoop(group, edit, context) : [group]));
    const { tensors, streams, units, iterDomainCount, scalarCount, exprCount } = edit;
    return { ...program, tensors, streams, units, iterDomainCount, scalarCount, exprCount, body };
  },
};

/** The statements of a segmented program, of which those with Stream axes form loops. */
export function streamLoopsOf(program: HostProgram, options: LoweringOptions): readonly (Statement | StreamLoop)[] {
  const members = loopMembers(program, options);
  requireSlicedInputs(program, members);
  return groupIntoLoops(program, members);
}

/** By statement of a segmented program; null for one without a Stream axis. */
export function loopMembers(program: HostProgram, options: LoweringOptions): readonly (LoopMember | null)[] {
  return program.body.map((statement) => memberOf(statement, program, options));
}

function unitsPostedTwice(body: readonly Statement[]): ReadonlySet<UnitId> {
  const posted = walk(body).flatMap((statement) => (statement.kind === "PostOnStream" ? [statement.unit] : []));
  return new Set(posted.filter((unit, i) => posted.indexOf(unit) !== i));
}

function memberOf(statement: Statement, program: HostProgram, options: LoweringOptions): LoopMember | null {
  const { tensors } = program;
  const looped = loopedAxis(statement, tensors, options);
  if (looped === null) return null;
  if (statement.kind === "PostOnStream") return unitMember(statement, looped, unitAxes(statement, looped, program));
  if (!isOp(statement)) return null;
  const form = pointToPointForm(statement, looped, tensors, options);
  const exchanges = options.p2p !== "broadcast";
  if (form !== null && form.kind !== "ranges" && exchanges) requireExchange(statement, form, options);
  const sent = form?.kind === "exchange" || form?.kind === "reduce" ? form.scattered : null;
  const operandAxes = (counted: IterDomain): readonly (IterDomain | null)[] =>
    form !== null && looped.chunks !== null && sent === null
      ? statement.inputs.map(() => null)
      : loopedOperandAxes(statement, counted, sent === null ? looped.chunks : sent.chunks, tensors);
  return opMember(statement, looped, form, exchanges, operandAxes, (which, axis) =>
    loopedFurtherAxis(statement, axis, which, tensors),
  );
}

/**
 * A reduction needs exchange-reductions. UCC neither coalesces sends and receives nor reaches peers' memory: its
 * exchanges would deadlock.
 */
function requireExchange(op: Op, form: PointToPointForm, { backend, p2p }: LoweringOptions): void {
  if (form.kind === "reduce") {
    fail("point-to-point-unsupported", "sends and receives cannot reduce", {
      place: opPlace(op),
      found: `a reduction of the ${form.type} axis with p2p ${p2p} (--schedule p2p)`,
      expected: "a set of the shards and a local reduction, or p2p broadcast",
      help: 'first run the pass exchange-reductions, or set p2p to "broadcast" (--schedule p2p=broadcast)',
    });
  }
  if (backend !== "ucc") return;
  fail("point-to-point-unsupported", "the ucc backend has no point-to-point schedule", {
    place: opPlace(op),
    found: `p2p ${p2p} (--schedule p2p) with backend ucc (--backend)`,
    expected: "p2p broadcast, or backend nccl or cuda",
    help: 'set p2p to "broadcast" (--schedule p2p=broadcast), or use another backend',
  });
}

/**
 * The statement or loop without the ops that have no tensor on the rank; null if none remains. Ops are grouped first,
 * so that all ranks have the same loops and post their communications in the same order.
 */
function ofRank(
  group: Statement | StreamLoop,
  tensors: readonly Tensor[],
  context: PassContext,
): Statement | StreamLoop | null {
  if (group.kind === "StreamLoop") {
    const members = group.members.filter(({ statement }) => runsOn(statement, tensors, context));
    if (members.length === group.members.length) return group;
    return members.length === 0 ? null : { ...group, members };
  }
  return !(isOp(group) || group.kind === "PostOnStream") || runsOn(group, tensors, context) ? group : null;
}

/** A unit runs where its results are; an op that reshards also where its operands are. */
function runsOn(statement: Op | PostOnStream, tensors: readonly Tensor[], context: PassContext): boolean {
  const { reads, writes } = statementAccess(statement);
  const meshes = new Set((isOp(statement) ? [...reads, ...writes] : writes).map((id) => at(tensors, id).mesh));
  return meshes.has(null) || decided(context, (rank) => [...meshes].some((mesh) => mesh?.has(rank) === true));
}
