/**
 * Gives an intermediate of a single Stream loop one slot per worker stream instead of one slice per iteration.
 *
 *   T1[istreamIdx{64}, M] = ALLOCATE(...)
 *   FOR streamIdx: ...; T2 = HirAliasSelect( T1, axis = istreamIdx{64}, index = streamIdx ); T2 = matmul(...); ...
 * becomes
 *   T1[iS{min(numberOfStreams, 64)}, M] = ALLOCATE(...)
 *   FOR streamIdx: ...; T2 = HirAliasSelect( T1, ..., index = ( streamIdx % numberOfStreams ) ); T2 = matmul(...); ...
 *
 * A buffer of chunks becomes slots of one chunk each: [istreamIdx{3}, iS{ceilDiv(i0, 3)}] becomes [iS{min(numberOfStreams,
 * 3)}, iS{ceilDiv(i0, 3)}], and its ShardByStreams become HirAliasSelects.
 *
 * iteration-buffers.ts finds these buffers and explains why no Wait is needed. nvFuser has no such pass (#5525).
 */
import type { Allocate, ForLoop, HostProgram, ShardByStream, Statement } from "../../host/nodes.ts";
import { isSlicing, ownersOf, scopesOf, type Slicing, statementAccess, walk } from "../../host/traverse.ts";
import {
  allocationSize,
  type IterDomain,
  type Tensor,
  type TensorDomain,
  type TensorId,
  withoutReductions,
} from "../../ir/domain.ts";
import { cutOf } from "../../ir/parts.ts";
import { isConstant, sameScalar } from "../../ir/scalar/fold.ts";
import { binary, constant, named, type Scalar } from "../../ir/scalar/scalar.ts";
import { didTypesOf } from "../../ir/shards.ts";
import { chunkFit, type Chunks } from "../../ir/stream.ts";
import { at } from "../../support/invariant.ts";
import { type ModelledAxis, splitLike, addAxis, type TensorEdit } from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";
import { chunkModel } from "../stream-loops/emit/slicer.ts";
import { type IterationBuffer, iterationBuffers, slotIndex, tensorsWithMemory } from "./iteration-buffers.ts";
import { collectUses, freeInScope } from "./uses.ts";

export const shrinkStreamBuffers: Pass<"communicating", "communicating"> = {
  name: "shrink-stream-buffers",
  from: "communicating",
  to: "communicating",
  run: (program, { options }) => {
    if (!options.shrink) return program;
    const tensors = [...program.tensors];
    const slots = new Map<Slicing, Statement>();
    let { iterDomainCount } = program;
    const shrunk = new Set<TensorId>();
    const replaced = new Set<TensorId>();
    const bodies = new Map<Statement, readonly Statement[]>();
    const withMemory = tensorsWithMemory(program);
    for (const [loop, candidates] of candidatesOf(program)) {
      const buffers = iterationBuffers(program, loop, candidates, withMemory).filter(
        (buffer) => isPerIteration(program, buffer, loop) && !givesUnitSize(program, loop, buffer.slices),
      );
      const allocations = iterationAllocations(program, loop, buffers);
      if (allocations !== null) {
        bodies.set(loop, allocations.body);
        for (const tensor of allocations.tensors) tensors[tensor.id] = tensor;
        for (const tensor of allocations.replaced) replaced.add(tensor);
      }
      for (const buffer of buffers) {
        const { tensor, slices } = buffer;
        if (replaced.has(tensor)) continue;
        const edit: TensorEdit = { tensors, iterDomainCount };
        const changed = withSlots(edit, buffer);
        if (changed === null) continue;
        ({ iterDomainCount } = edit);
        tensors[tensor] = changed;
        shrunk.add(tensor);
        for (const slice of slices) slots.set(slice, inSlot(edit, slice, buffer, loop));
      }
    }
    if (shrunk.size === 0 && replaced.size === 0) return program;
    const isReplaced = ownedBy(program, replaced);
    const body = program.body.flatMap((statement): readonly Statement[] => {
      if ((statement.kind === "Allocate" || statement.kind === "Deallocate") && isReplaced(statement.tensor)) return [];
      const own = statement.kind === "ForLoop" ? bodies.get(statement) : undefined;
      const changed = statement.kind === "ForLoop" && own !== undefined ? { ...statement, body: own } : statement;
      return [rewrite(changed, slots, shrunk, tensors)];
    });
    return { ...program, tensors, iterDomainCount, body } satisfies HostProgram;
  },
};

/**
 * For each loop, the tensors that are allocated at top level and used only in that loop. Inputs and outputs are
 * excluded. Outside the loop, only a Deallocate may name them or their slices.
 */
function candidatesOf(program: HostProgram): ReadonlyMap<ForLoop, ReadonlySet<TensorId>> {
  const allocated = new Set<TensorId>();
  const users = new Map<TensorId, Set<Statement>>();
  const sliceOf = new Map<TensorId, TensorId>();
  for (const statement of program.body) {
    if (statement.kind === "Allocate" && !statement.zeroInit) allocated.add(statement.tensor);
    if (statement.kind === "Allocate" || statement.kind === "Deallocate") continue;
    const use = (tensor: TensorId): void => {
      const known = users.get(tensor);
      if (known === undefined) users.set(tensor, new Set([statement]));
      else known.add(statement);
    };
    for (const inner of walk([statement])) {
      if (isSlicing(inner)) sliceOf.set(inner.output, inner.input);
      const { reads, writes } = statementAccess(inner);
      reads.forEach(use);
      writes.forEach(use);
    }
  }
  for (const [slice, statements] of users) {
    for (let owner = sliceOf.get(slice); owner !== undefined; owner = sliceOf.get(owner)) {
      statements.forEach((statement) => users.get(owner)?.add(statement));
    }
  }
  const bound = new Set<TensorId>([...program.inputs, ...program.outputs]);
  const candidates = new Map<ForLoop, Set<TensorId>>();
  for (const tensor of allocated) {
    const [user, other] = users.get(tensor) ?? [];
    if (user?.kind !== "ForLoop" || other !== undefined || bound.has(tensor)) continue;
    candidates.set(user, (candidates.get(user) ?? new Set()).add(tensor));
  }
  return candidates;
}

/** Whether the loop has as many iterations as the buffer has slices. */
function isPerIteration({ tensors }: HostProgram, { tensor, axis, chunks }: IterationBuffer, loop: ForLoop): boolean {
  const sliced = at(at(tensors, tensor).domain.logical, axis);
  const count = chunks ?? sliced.extent;
  const counted = isConstant(loop.start, 0) && isConstant(loop.step, 1) && sameScalar(count, loop.stop);
  return counted && sliced.iterType === "iteration";
}

/** Whether a unit, such as an expand, takes the size of a chunk from its output alone: a slot has that of the longest. */
function givesUnitSize({ units }: HostProgram, loop: ForLoop, slices: readonly Slicing[]): boolean {
  const chunks = new Set(slices.map(({ output }) => output));
  return [...walk(loop.body)].some((statement) => {
    if (statement.kind !== "PostOnStream") return false;
    const { tensors, inputs, outputs } = at(units, statement.unit).fusion;
    const symbolsOf = (id: TensorId): readonly string[] =>
      at(tensors, id).domain.logical.flatMap(({ extent }) => (extent.kind === "symbol" ? [extent.name] : []));
    const known = new Set(inputs.flatMap(symbolsOf));
    return statement.outputs.some(
      (id, i) => chunks.has(id) && symbolsOf(at(outputs, i)).some((name) => !known.has(name)),
    );
  });
}

/** Whether a tensor is one of `tensors` or a slice of it. */
function ownedBy({ body }: HostProgram, tensors: ReadonlySet<TensorId>): (tensor: TensorId) => boolean {
  const ownerOf = ownersOf(body);
  return (tensor) => tensors.has(ownerOf(tensor));
}

/** The tensor with slots; null if it has one slice, or if the sliced axis is split or merged. */
function withSlots(edit: TensorEdit, { tensor: id, axis, chunks }: IterationBuffer): Tensor | null {
  const tensor = at(edit.tensors, id);
  const { logical, loop: loopDomain, allocation, transforms } = tensor.domain;
  const sliced = at(logical, axis);
  const count = chunks ?? sliced.extent;
  if (isConstant(count, 1)) return null;
  if (chunks !== null) return allocation === null ? withChunkSlots(edit, tensor, sliced, chunks) : null;
  const domains = [loopDomain, ...(allocation === null ? [] : [allocation])];
  if (!domains.every((axes) => axes.some((each) => each.id === sliced.id))) return null;
  const slotAxis = slotsOf(edit, count, sliced);
  const replaced = (axes: readonly IterDomain[]): IterDomain[] =>
    axes.map((each) => (each.id === sliced.id ? slotAxis : each));
  const domain: TensorDomain = {
    logical: replaced(logical),
    transforms,
    loop: replaced(loopDomain),
    allocation: allocation === null ? null : replaced(allocation),
  };
  return { ...tensor, domain };
}

/** The axes of a chunk, after an axis of slots. */
function withChunkSlots(edit: TensorEdit, tensor: Tensor, axis: IterDomain, parts: Scalar): Tensor | null {
  const chunks: Chunks = { parts, within: [] };
  // Chunks of the devices' shares may be longer on one device than parts of each chunk.
  if (chunkFit(cutOf(tensor.domain, axis), chunks).kind !== "fits") return null;
  const kept = tensor.domain.logical.map((own): ModelledAxis =>
    own.id === axis.id ? chunkModel(tensor, own, chunks) : { axis: own, model: cutOf(tensor.domain, own) },
  );
  const slots = slotsOf(edit, parts, axis);
  return { ...tensor, domain: splitLike(edit, [{ axis: slots, model: null }, ...kept]) };
}

function slotsOf(edit: TensorEdit, count: Scalar, like: IterDomain): IterDomain {
  const extent = binary("min", named("numberOfStreams"), count);
  return { ...addAxis(edit, { extent, iterType: like.iterType }), parallelType: "Serial" };
}

/** The statement that binds an iteration's slice in its slot. */
function inSlot(edit: TensorEdit, slice: Slicing, { tensor, chunks }: IterationBuffer, loop: ForLoop): Statement {
  const index = slotIndex(loop);
  const { input, output } = slice;
  if (slice.kind === "HirAliasSelect") return { ...slice, index };
  if (chunks !== null) return { kind: "HirAliasSelect", input, output, axis: 0, index };
  // A chunk of one index prints the number of slots.
  const parts = at(withoutReductions(at(edit.tensors, tensor).domain.logical), slice.axis).extent;
  const chunk = at(edit.tensors, output);
  const slots = (axis: IterDomain): IterDomain => (axis.parallelType === "Stream" ? { ...axis, extent: parts } : axis);
  edit.tensors[output] = { ...chunk, domain: { ...chunk.domain, loop: chunk.domain.loop.map(slots) } };
  return { ...slice, parts, index };
}

function rewrite(
  statement: Statement,
  slots: ReadonlyMap<Slicing, Statement>,
  shrunk: ReadonlySet<TensorId>,
  tensors: readonly Tensor[],
): Statement {
  const inside = (body: readonly Statement[]): Statement[] =>
    body.map((inner) => rewrite(inner, slots, shrunk, tensors));
  switch (statement.kind) {
    case "Allocate":
      return shrunk.has(statement.tensor)
        ? { ...statement, size: allocationSize(at(tensors, statement.tensor)) }
        : statement;
    case "HirAliasSelect":
    case "ShardByStream":
      return slots.get(statement) ?? statement;
    case "ForLoop":
      return { ...statement, body: inside(statement.body) };
    case "IfThenElse":
      return { ...statement, then: inside(statement.then), else: inside(statement.else) };
    default:
      return statement;
  }
}

// Buffers of one iteration as tensors that it allocates before their first use and frees after the last one, so that
// they share memory in turn:
//
//   FOR streamIdx: ...; T2 = HirAliasSelect( T1, ..., index = streamIdx ); T2 = matmul(...); T3 = Set(T2); ...
// becomes
//   FOR streamIdx: ...; T2 = ALLOCATE(...); T2 = matmul(...); T3 = Set(T2); Deallocate T2; ...
//
// The iteration's worker stream orders all of its uses, and those of the next iteration on that stream.

interface IterationAllocations {
  readonly loop: ForLoop;
  /** The loop's body with the allocations. */
  readonly body: readonly Statement[];
  /** The tensors that have got memory of their own. */
  readonly tensors: readonly Tensor[];
  /** The buffers that are gone. */
  readonly replaced: readonly TensorId[];
}

/**
 * Allocations for those of the loop's buffers that can have them. Null if none of these lives only before or after
 * another one: slots then take no more memory.
 */
function iterationAllocations(
  program: HostProgram,
  loop: ForLoop,
  buffers: readonly IterationBuffer[],
): IterationAllocations | null {
  const changesStream = loop.body.flatMap(scopesOf).some((scope) => walk(scope).some(isSetCurrentStream));
  if (changesStream) return null;
  const plans = buffers.flatMap((buffer) => planOf(program, loop, buffer) ?? []);
  const own = new Set(plans.map(({ tensor }) => tensor.id));
  const bindings = new Map<Statement, readonly Statement[]>(plans.flatMap((plan) => plan.bindings));
  const body = rebind(loop.body, (statement) =>
    // A communication's Allocate of a slice, which is bound already.
    statement.kind === "Allocate" && own.has(statement.tensor) ? [] : bindings.get(statement),
  );
  const uses = collectUses({ ...program, body });
  if (!someLiveInTurn(body, own, uses)) return null;
  return {
    loop,
    body: freeInScope(body, own, uses),
    tensors: plans.map(({ tensor }) => tensor),
    replaced: plans.map(({ buffer }) => buffer.tensor),
  };
}

function isSetCurrentStream({ kind }: Statement): boolean {
  return kind === "SetCurrentStream";
}

interface Plan {
  readonly buffer: IterationBuffer;
  readonly tensor: Tensor;
  /** What takes the place of each slice. */
  readonly bindings: readonly (readonly [Slicing, readonly Statement[]])[];
}

/** Null if the slices have no tensor in common. */
function planOf(program: HostProgram, loop: ForLoop, buffer: IterationBuffer): Plan | null {
  const { slices } = buffer;
  const whole = at(program.tensors, buffer.tensor);
  const [first, ...others] = slices;
  if (first === undefined || whole.domain.allocation !== null) return null;
  if (others.length > 0 && !slices.every((slice) => loop.body.includes(slice))) return null;
  // An index of the axis is an index of a chunk of one index, but not the other way round.
  const chunks = slices.filter((slice) => slice.kind === "ShardByStream");
  const [chunk] = chunks;
  if (chunks.length > 1 || (chunk === undefined && others.length > 0)) return null;
  const kept = chunk === undefined ? at(program.tensors, first.output) : chunkTensor(program, buffer, chunk);
  if (kept === null || kept.domain.allocation !== null) return null;
  const tensor: Tensor = { ...kept, memory: whole.memory };
  const allocate: Allocate = {
    kind: "Allocate",
    tensor: tensor.id,
    memory: tensor.memory === "symmetric" ? "symmetric" : "global",
    size: allocationSize(tensor),
    zeroInit: false,
    fresh: false,
  };
  const bindings = slices.map((slice, i): Plan["bindings"][number] => {
    const view: Statement = { ...slice, input: tensor.id, index: constant(0) };
    return [slice, [...(i === 0 ? [allocate] : []), ...(slice.output === tensor.id ? [] : [view])]];
  });
  return { buffer, tensor, bindings };
}

/**
 * The chunk with memory of its own, and without the Stream axis that it prints. Null if chunks of the devices' shares may
 * be longer on one device than parts of each chunk.
 */
function chunkTensor({ tensors }: HostProgram, { tensor: id, axis, chunks }: IterationBuffer, slice: ShardByStream) {
  const whole = at(tensors, id);
  const own = at(whole.domain.logical, axis);
  const cut = cutOf(whole.domain, own);
  const fits =
    chunks === null ? didTypesOf(cut).length === 0 : chunkFit(cut, { parts: chunks, within: [] }).kind === "fits";
  if (!fits) return null;
  const tensor = at(tensors, slice.output);
  const { domain } = tensor;
  return { ...tensor, domain: { ...domain, loop: domain.loop.filter((each) => each.parallelType !== "Stream") } };
}

/** Whether one of the tensors has its last use in the scope before another one has its first. */
function someLiveInTurn(
  scope: readonly Statement[],
  tensors: ReadonlySet<TensorId>,
  uses: ReturnType<typeof collectUses>,
): boolean {
  const first = new Map<TensorId, number>();
  const last = new Map<TensorId, number>();
  for (const [position, statement] of scope.entries()) {
    for (const tensor of uses.of(statement)) {
      if (!tensors.has(tensor)) continue;
      if (!first.has(tensor)) first.set(tensor, position);
      last.set(tensor, position);
    }
  }
  return Math.min(...last.values()) < Math.max(...first.values());
}

function rebind(
  body: readonly Statement[],
  boundTo: (statement: Statement) => readonly Statement[] | undefined,
): readonly Statement[] {
  return body.flatMap((statement): readonly Statement[] => {
    const bound = boundTo(statement);
    if (bound !== undefined) return bound;
    if (statement.kind !== "IfThenElse") return [statement];
    return [{ ...statement, then: rebind(statement.then, boundTo), else: rebind(statement.else, boundTo) }];
  });
}
