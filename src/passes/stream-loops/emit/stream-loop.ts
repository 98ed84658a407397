/**
 * The statements of one Stream loop: allocations of its outputs, a loop that makes every worker stream wait for the
 * caller's stream, and a loop that runs one chunk per iteration. In a single loop, a worker would wait for the caller's
 * stream after that stream has waited for the previous worker, and the chunks would run one after the other.
 */
import type { Statement, StreamId, HostUnit, PostOnStream, UnitId } from "../../../host/nodes.ts";
import { isOp } from "../../../host/traverse.ts";
import { allocationSize, type IterDomain, type TensorId, isDID, type Tensor } from "../../../ir/domain.ts";
import type { Op } from "../../../ir/ops/op.ts";
import { binary, constant, named, type Scalar, printScalar, symbol } from "../../../ir/scalar/scalar.ts";
import { at, makeId, invariant } from "../../../support/invariant.ts";
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
import { createSlicer, onChunk, withoutLoopedAxis, chunkModel, countedAs } from "./slicer.ts";
import { cutOf } from "../../../ir/parts.ts";
import { constantValue } from "../../../ir/scalar/fold.ts";
import type { Chunks } from "../../../ir/stream.ts";
import { type ModelledAxis, redomain, type TensorEdit } from "../../edit/tensor-edit.ts";
import { slicedTensors } from "../looped-axis.ts";

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

// One iteration of a host unit: the unit on chunks of its inputs and outputs. Its Fusion sees the extent of a chunk: a
// new symbol, which each run takes from the chunk, unless all chunks are known to have one size.

function unitStatements(
  post: PostOnStream,
  { read, made, chunks, counted }: LoopMember,
  { slicer, edit }: LoopContext,
): readonly Statement[] {
  const axes = made.map((axis) => {
    invariant(axis !== null, "a unit completes a chunk of each output", post);
    return axis;
  });
  const unit = chunkUnit(edit, post, axes, chunks, counted.extent);
  const bindings: Statement[] = [];
  const chunkOf = (id: TensorId, axis: IterDomain | null): TensorId => {
    if (axis === null) return id;
    const { slice, binding } = slicer.chunk(id, axis);
    bindings.push(...binding);
    return slice;
  };
  const inputs = post.inputs.map((id, i) => chunkOf(id, read[i] ?? null));
  const outputs = post.outputs.map((id, i) => chunkOf(id, at(axes, i)));
  return [...bindings, { kind: "PostOnStream", unit, inputs, outputs }];
}

/** The unit on chunks. It replaces the whole unit, unless another statement posts that too. */
function chunkUnit(
  edit: LoopEdit,
  post: PostOnStream,
  made: readonly IterDomain[],
  chunks: Chunks | null,
  counted: Scalar,
): UnitId {
  const whole = at(edit.units, post.unit);
  const sliced = slicedTensors(post, made, chunks, edit);
  const extentOf = chunkExtents(edit, whole, chunks);
  const tensors: TensorEdit = {
    tensors: [...whole.fusion.tensors],
    iterDomainCount: whole.fusion.iterDomainCount,
  };
  for (const [id, own] of sliced) {
    const axis = countedAs(own, counted);
    const tensor = at(tensors.tensors, id);
    const cut = chunks ?? { parts: axis.extent, within: [] };
    redomain(tensors, tensor, chunkAxes(tensor, axis, cut, extentOf(id, axis)));
  }
  const ops = whole.fusion.ops.map((op) => {
    const [input] = op.inputs;
    const axis = input === undefined ? undefined : sliced.get(input);
    return input === undefined || axis === undefined
      ? op
      : onChunk(op, axis, at(whole.fusion.tensors, input), at(tensors.tensors, input));
  });
  const fusion = {
    ...whole.fusion,
    ...tensors,
    ops,
    scalarCount: Math.max(whole.fusion.scalarCount, edit.scalarCount),
  };
  const id = edit.shared.has(post.unit) ? makeId<UnitId>(edit.units.length) : post.unit;
  edit.units[id] = { ...whole, id, fusion };
  return id;
}

/**
 * The extent of an iteration's part of an axis: 1 for an index of a whole axis, the size of all chunks if they are alike
 * on all devices, or a new symbol for each extent that is cut.
 */
function chunkExtents(
  edit: LoopEdit,
  { fusion }: HostUnit,
  chunks: Chunks | null,
): (tensor: TensorId, axis: IterDomain) => Scalar {
  if (chunks === null) return () => constant(1);
  const symbols = new Map<string, Scalar>();
  const parts = constantValue(chunks.parts);
  return (id, axis) => {
    const size = constantValue(axis.extent);
    const devices = cutOf(at(fusion.tensors, id).domain, axis).parts.reduce(
      (product, own) => (isDID(own.type) ? product * (constantValue(own.extent) ?? 0) : product),
      1,
    );
    const isEven = size !== null && parts !== null && size % (parts * devices) === 0;
    if (isEven) return constant(size / parts);
    // One device's one chunk has the element.
    if (size === 1) return constant(1);
    const key = printScalar(axis.extent);
    const known = symbols.get(key) ?? symbol(`i${edit.scalarCount++}`);
    symbols.set(key, known);
    return known;
  };
}

/** The axes of a tensor of the unit with `axis` of an iteration's extent, and no Stream. */
function chunkAxes(tensor: Tensor, axis: IterDomain, chunks: Chunks, extent: Scalar): readonly ModelledAxis[] {
  return tensor.domain.logical.map((own): ModelledAxis => {
    if (own.id !== axis.id) return { axis: own, model: cutOf(tensor.domain, own) };
    return { axis: { ...own, extent, parallelType: "Serial" }, model: chunkModel(tensor, axis, chunks).model };
  });
}
