/**
 * The statements of one Stream loop: allocations of its outputs, a loop that makes every worker stream wait for the
 * caller's stream, and a loop that runs one chunk per iteration. In a single loop, a worker would wait for the caller's
 * stream after that stream has waited for the previous worker, and the chunks would run one after the other.
 */
import type { Statement, StreamId } from "../../../host/nodes.ts";
import { isOp } from "../../../host/traverse.ts";
import { allocationSize, type IterDomain, type TensorId } from "../../../ir/domain.ts";
import type { Op } from "../../../ir/ops/op.ts";
import { binary, constant, named, type Scalar } from "../../../ir/scalar/scalar.ts";
import { at } from "../../../support/invariant.ts";
import type { PassContext } from "../../pass.ts";
import { backendOfTeam, decided, sliceOfRank } from "../../rank-class.ts";
import { isOnDevice } from "../../routes/layouts.ts";
import type { PointToPointForm } from "../forms.ts";
import type { StreamLoop } from "../group/group-loops.ts";
import type { LoopMember } from "../loop-member.ts";
import { accumulatesChunks, accumulationStatements, sumsChunks, sumStatements } from "./accumulate-chunks.ts";
import {
  addStream,
  type IterationStatements,
  type LoopContext,
  type LoopEdit,
  nextExpr,
  teamPositions,
} from "./loop-context.ts";
import { pointToPointStatements } from "./point-to-point-statements.ts";
import { createSlicer, onChunk, withoutLoopedAxis } from "./slicer.ts";
import { unitStatements } from "./unit-chunks.ts";

const loopIndex = { kind: "named", name: "streamIdx" } as const;

export function emitLoop(loop: StreamLoop, edit: LoopEdit, ofRank: PassContext): readonly Statement[] {
  const { over, peers } = loop;
  const isRotated = peers !== null && ofRank.options.p2p === "rotated";
  const stop = over.extent;
  const allocated = loop.members.flatMap((member) => allocations(member, edit, ofRank));
  const caller = addStream(edit, null);
  const worker = addStream(edit, binary("mod", loopIndex, named("numberOfStreams")));
  const index = isRotated ? rotated(teamPositions(peers.mesh, peers.type, ofRank).own, peers.pieces, stop) : loopIndex;
  const slicer = createSlicer(edit, index, loop.chunks, loop.members[0]?.counted.extent ?? stop);
  const context: LoopContext = {
    ...ofRank,
    edit,
    slicer,
    iteration: loopIndex,
    index,
    isRotated,
    stop,
    worker,
  };
  const firstSum = loop.members.find(isOrdered);
  const written = loop.members.map((member) => memberStatements(member, context, member === firstSum));
  const forEach = (statements: readonly Statement[]): Statement => ({
    kind: "ForLoop",
    iterDomain: over,
    index: loopIndex,
    start: constant(0),
    stop,
    step: constant(1),
    body: statements,
  });
  const set = (stream: StreamId): Statement => ({ kind: "SetCurrentStream", stream });
  const synchronize = (stream: StreamId): Statement => ({ kind: "Synchronize", stream });
  return [
    ...allocated,
    { kind: "GetCurrentStream", stream: caller },
    forEach([set(worker), synchronize(caller)]),
    forEach([
      set(worker),
      ...written.flatMap(({ body }) => body),
      ...written.flatMap(({ epilogue }) => epilogue),
      set(caller),
      synchronize(worker),
    ]),
  ];
}

/** The chunk of an iteration in which each device of the team begins with its own share. */
function rotated(own: Scalar, pieces: number, stop: Scalar): Scalar {
  const first = pieces === 1 ? own : binary("mul", own, constant(pieces));
  return binary("mod", binary("add", first, loopIndex), stop);
}

/** Allocates the whole outputs of which the device has a share. CUDA's rooted collectives write into peers' outputs. */
function allocations({ outputs, form }: LoopMember, edit: LoopEdit, context: PassContext): readonly Statement[] {
  return outputs.flatMap((id): readonly Statement[] => {
    const output = at(edit.tensors, id);
    if (!decided(context, (rank) => isOnDevice(output, rank))) return [];
    const isRooted = form !== null && form.kind !== "ranges" && context.options.p2p === "broadcast";
    const forPeers = isRooted && backendOfTeam(context, sliceOfRank(context, form.mesh, form.type)) === "cuda";
    const memory = output.memory === "symmetric" || forPeers ? "symmetric" : "global";
    if (output.memory !== memory) edit.tensors[id] = { ...output, memory };
    return [{ kind: "Allocate", tensor: id, memory, size: allocationSize(output), zeroInit: false, fresh: false }];
  });
}

/** Whether iterations of the member must follow each other. */
function isOrdered(member: LoopMember): boolean {
  const { statement } = member;
  return isOp(statement) && (accumulatesChunks(statement, member) || sumsChunks(statement, member));
}

function memberStatements(member: LoopMember, context: LoopContext, waits: boolean): IterationStatements {
  const { statement, form } = member;
  if (!isOp(statement)) return { body: unitStatements(statement, member, context), epilogue: [] };
  if (form?.kind === "ranges") return { body: rangesStatements(statement, member, form, context), epilogue: [] };
  if (form !== null) return pointToPointStatements(statement, form, context);
  if (accumulatesChunks(statement, member))
    return { body: accumulationStatements(statement, member, context, waits), epilogue: [] };
  if (sumsChunks(statement, member)) {
    return { body: sumStatements(statement, member, context, waits), epilogue: [] };
  }
  return { body: sliceStatements(statement, member, context), epilogue: [] };
}

/** Slices of the operands in order, then of the output, then the op on them. */
function sliceStatements(
  op: Op,
  { read, made, counted, chunks }: LoopMember,
  { slicer, edit }: LoopContext,
): readonly Statement[] {
  const sliced = chunks === null ? withoutLoopedAxis(op, read, counted, edit.tensors) : op;
  const bindings: Statement[] = [];
  const sliceOf = (id: TensorId, axis: IterDomain | null): TensorId => {
    if (axis === null) return id;
    const { slice, binding } = slicer.slice(id, axis);
    bindings.push(...binding);
    return slice;
  };
  const inputs = op.inputs.map((input, operand) => sliceOf(input, read[operand] ?? null));
  const output = sliceOf(op.output, made[0] ?? counted);
  const [first] = op.inputs;
  const cut =
    chunks === null || first === undefined
      ? sliced
      : onChunk(op, read[0] ?? null, at(edit.tensors, first), at(edit.tensors, at(inputs, 0)));
  const further = op.further?.map((id, i) => sliceOf(id, made[i + 1] ?? null));
  return [...bindings, { ...cut, inputs, output, ...(further === undefined ? {} : { further }) }];
}

/** A gather of the iteration's chunk from all devices that have a part of it. */
function rangesStatements(
  op: Op,
  { counted }: LoopMember,
  { mesh, type }: PointToPointForm,
  context: LoopContext,
): readonly Statement[] {
  const { edit, slicer } = context;
  const { slice, binding } = slicer.slice(op.output, counted);
  const id = nextExpr(edit);
  const team = sliceOfRank(context, mesh, type);
  return [
    ...binding,
    {
      kind: "Communication",
      id,
      type: "Allgather",
      team,
      root: null,
      reduceOp: null,
      input: at(op.inputs, 0),
      output: slice,
      backend: backendOfTeam(context, team),
    },
    { kind: "Wait", target: id },
  ];
}
