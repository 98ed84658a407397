/**
 * Buffers of one iteration as tensors that it allocates before their first use and frees after the last one, so that
 * they share memory in turn:
 *
 *   FOR streamIdx: ...; T2 = HirAliasSelect( T1, ..., index = streamIdx ); T2 = matmul(...); T3 = Set(T2); ...
 * becomes
 *   FOR streamIdx: ...; T2 = ALLOCATE(...); T2 = matmul(...); T3 = Set(T2); Deallocate T2; ...
 *
 * The iteration's worker stream orders all of its uses, and those of the next iteration on that stream.
 */
import { cutOf } from "../../ir/parts.ts";
import { didTypesOf } from "../../ir/shards.ts";
import { allocationSize, type Tensor, type TensorId } from "../../ir/domain.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import type { Allocate, ForLoop, HostProgram, ShardByStream, Statement } from "../../host/nodes.ts";
import { scopesOf, walk } from "../../host/traverse.ts";
import { at } from "../../support/invariant.ts";
import { chunkFit } from "../../ir/stream.ts";
import type { IterationBuffer } from "./iteration-buffers.ts";
import type { Slicing } from "./slices.ts";
import { collectUses, freeInScope } from "./uses.ts";

export interface IterationAllocations {
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
export function iterationAllocations(
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
