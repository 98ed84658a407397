/**
 * The statements of one Stream loop: allocations of its outputs, a loop that makes every worker stream wait for the
 * caller's stream, and a loop that runs one chunk per iteration. In a single loop, a worker would wait for the caller's
 * stream after that stream has waited for the previous worker, and the chunks would run one after the other.
 */
import { allocationSize, type IterDomain, type TensorId } from "../../../ir/domain.ts";
import type { Op } from "../../../ir/ops/op.ts";
import { binary, constant, named } from "../../../ir/scalar/scalar.ts";
import type { Statement, StreamId } from "../../../host/nodes.ts";
import { at } from "../../../support/invariant.ts";
import { accumulates, accumulationStatements } from "./accumulate-chunks.ts";
import type { LoweringOptions } from "../../options.ts";
import { isOnDevice } from "../../reshard/sharding.ts";
import type { StreamLoop } from "../group/group-loops.ts";
import type { LoopMember } from "../loop-member.ts";
import { addStream, type IterationStatements, type LoopContext, type LoopEdit } from "./loop-context.ts";
import { pointToPointStatements } from "./point-to-point-statements.ts";
import { withoutLoopedAxis } from "./slice-op.ts";
import { createSlicer } from "./slicer.ts";
import { teamPositions } from "./team-positions.ts";

const loopIndex = { kind: "named", name: "streamIdx" } as const;

export function emitLoop(
  loop: StreamLoop,
  edit: LoopEdit,
  rank: number,
  options: LoweringOptions,
): readonly Statement[] {
  const { over, peers } = loop;
  const isRotated = peers !== null && options.p2p === "rotated";
  const stop = over.extent;
  const allocations = loop.members.flatMap((member) => allocation(member, edit, rank, options));
  const caller = addStream(edit, null);
  const worker = addStream(edit, binary("mod", loopIndex, named("numberOfStreams")));
  const index = isRotated
    ? binary("mod", binary("add", teamPositions(peers.mesh, peers.type, rank).own, loopIndex), stop)
    : loopIndex;
  const slicer = createSlicer(edit, index);
  const context: LoopContext = {
    edit,
    slicer,
    rank,
    options,
    iteration: loopIndex,
    index,
    isRotated,
    stop,
    worker,
  };
  const firstSum = loop.members.find(accumulates);
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
    ...allocations,
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

/** Allocates the whole output, if the device has a share of it. CUDA's rooted collectives write into peers' outputs. */
function allocation(
  { op, form }: LoopMember,
  edit: LoopEdit,
  rank: number,
  { backend, p2p }: LoweringOptions,
): readonly Statement[] {
  const output = at(edit.tensors, op.output);
  if (!isOnDevice(output, rank)) return [];
  const forPeers = form !== null && backend === "cuda" && p2p === "broadcast";
  const memory = output.memory === "symmetric" || forPeers ? "symmetric" : "global";
  if (output.memory !== memory) edit.tensors[output.id] = { ...output, memory };
  return [{ kind: "Allocate", tensor: output.id, memory, size: allocationSize(output), zeroInit: false, fresh: false }];
}

function memberStatements(member: LoopMember, context: LoopContext, waits: boolean): IterationStatements {
  if (member.form !== null) return pointToPointStatements(member.op, member.form, context);
  if (accumulates(member)) return { body: accumulationStatements(member, context, waits), epilogue: [] };
  return { body: sliceStatements(member.op, member.read, member.stream, context), epilogue: [] };
}

/** Slices of the operands in order, then of the output, then the op on them. */
function sliceStatements(
  op: Op,
  axes: readonly (IterDomain | null)[],
  looped: IterDomain,
  { slicer, edit }: LoopContext,
): readonly Statement[] {
  const sliced = withoutLoopedAxis(op, axes, looped, edit.tensors);
  const bindings: Statement[] = [];
  const sliceOf = (id: TensorId, axis: IterDomain | null): TensorId => {
    if (axis === null) return id;
    const { slice, binding } = slicer.slice(id, axis);
    bindings.push(...binding);
    return slice;
  };
  const inputs = op.inputs.map((input, operand) => sliceOf(input, axes[operand] ?? null));
  const output = sliceOf(op.output, looped);
  return [...bindings, { ...sliced, inputs, output }];
}
