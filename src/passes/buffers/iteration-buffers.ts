/**
 * Finds buffers of which each iteration of a loop uses one slice, written by that iteration, only on its own worker
 * stream. Iterations i and i + numberOfStreams run on one stream in order, and can use one slot in turn.
 *
 * Every access in the loop must
 * - go through a slice, along one axis at one index, or one chunk of it, that the iteration has bound before;
 * - be on Stream ( index % numberOfStreams );
 * - if it reads, come after the iteration has written all of the slice, on all paths;
 * - if it is a communication, be waited for in the iteration, on that stream. Peers then access the slot only between
 * its post and its Wait: the Wait of a send precedes all writes of iteration i + numberOfStreams, and a peer puts into
 * the slot only after that iteration has signalled that it is ready.
 */
import { collectives } from "../../host/collectives.ts";
import type { ExprId, ForLoop, HostProgram, Statement, StreamId } from "../../host/nodes.ts";
import { isOp, isSlicing, isTeamCommunication, type Slicing, statementAccess, walk } from "../../host/traverse.ts";
import { type TensorId, type IterDomain, type Tensor, withoutReductions } from "../../ir/domain.ts";
import { rowOf } from "../../ir/ops/rows.ts";
import { sameScalar, constantValue } from "../../ir/scalar/fold.ts";
import { binary, named, type Scalar } from "../../ir/scalar/scalar.ts";
import { typeOfWhole } from "../../ir/shards.ts";
import { at } from "../../support/invariant.ts";
import { cutOf, isEven } from "../../ir/parts.ts";

export interface IterationBuffer {
  readonly tensor: TensorId;
  /** The position of the sliced axis in the logical domain. */
  readonly axis: number;
  /** How many chunks of the axis the slices are; null if they are indices of it. */
  readonly chunks: Scalar | null;
  /** The statements that slice it. */
  readonly slices: readonly Slicing[];
}

/** The worker stream and the slot of an iteration. */
export function slotIndex(loop: ForLoop): Scalar {
  return binary("mod", loop.index, named("numberOfStreams"));
}

/** The tensors with separate memory outside all loops. */
export function tensorsWithMemory({ inputs, outputs, body }: HostProgram): ReadonlySet<TensorId> {
  const allocated = body.flatMap((statement) => (statement.kind === "Allocate" ? [statement.tensor] : []));
  return new Set([...inputs, ...outputs, ...allocated]);
}

/**
 * The candidates that the iterations of `loop` use as described above. `withMemory`: the program's `tensorsWithMemory`.
 */
export function iterationBuffers(
  program: HostProgram,
  loop: ForLoop,
  candidates: ReadonlySet<TensorId>,
  withMemory: ReadonlySet<TensorId>,
): readonly IterationBuffer[] {
  const steps = iterationSteps(loop);
  const views = collectViews(program, steps, candidates);
  const unfit = new Set<TensorId>(views.unfit);
  const written = new Map<TensorId, (readonly Guard[])[]>();
  const worker = slotIndex(loop);
  const waited = waits(program, steps, worker);
  const slices = new Set<TensorId>();
  for (const { statement } of steps) if (isSlicing(statement)) slices.add(statement.output);
  const bindsAnew = (statement: Statement): boolean =>
    isOp(statement) &&
    // An output without memory becomes a view of the input and would outlive the iteration.
    rowOf(statement).isView &&
    !withMemory.has(statement.output) &&
    !slices.has(statement.output);
  let group: GroupUse | null = null;
  for (const [position, step] of steps.entries()) {
    const { statement, guards } = step;
    if (statement.kind === "StartCoalescing") group = { views: [], guards };
    if (statement.kind === "EndCoalescing") {
      if (group !== null && !waited(statement.id, position, group.guards))
        group.views.forEach(({ of }) => unfit.add(of));
      group = null;
    }
    const { reads, writes } = dataAccesses(statement);
    for (const tensor of [...reads, ...writes]) {
      if (candidates.has(tensor)) unfit.add(tensor);
      const view = views.byTensor.get(tensor);
      if (view === undefined) continue;
      const bound = view.position < position && follows(view.guards, guards);
      if (!bound || !isStreamOf(program, step.stream, worker)) unfit.add(view.of);
      if (statement.kind === "P2PCommunication" && group !== null) group.views.push(view);
      else if (isTeamCommunication(statement) || statement.kind === "P2PCommunication") {
        if (!waited(statement.id, position, guards)) unfit.add(view.of);
      }
    }
    for (const tensor of reads) {
      const view = views.byTensor.get(tensor);
      if (view !== undefined && bindsAnew(statement)) unfit.add(view.of);
      if (view !== undefined && !covers(written.get(view.of) ?? [], guards)) unfit.add(view.of);
    }
    for (const tensor of writes) {
      const view = views.byTensor.get(tensor);
      if (view === undefined) continue;
      if (!knowsLengths(program, statement, view.of, slices)) unfit.add(view.of);
      if (!view.whole || !writesOnEveryRank(statement)) continue;
      written.set(view.of, [...(written.get(view.of) ?? []), guards]);
    }
  }
  return [...views.slicesOf].flatMap(([tensor, slicesOfTensor]) => {
    const [first] = slicesOfTensor;
    if (first === undefined || unfit.has(tensor)) return [];
    const { axis, chunks } = slicedAxisOf(program, first);
    const alike = slicesOfTensor.every((other) => {
      const own = slicedAxisOf(program, other);
      const sameCuts = chunks === null || own.chunks === null ? chunks === own.chunks : sameScalar(chunks, own.chunks);
      return own.axis === axis && sameCuts && sameScalar(other.index, first.index);
    });
    return alike ? [{ tensor, axis, chunks, slices: slicesOfTensor }] : [];
  });
}

interface GroupUse {
  readonly views: View[];
  readonly guards: readonly Guard[];
}

const none = { reads: [], writes: [] };

/** The tensors whose elements a statement uses. Tensors that it only binds or declares are excluded. */
function dataAccesses(statement: Statement): ReturnType<typeof statementAccess> {
  switch (statement.kind) {
    case "HirAliasSelect":
    case "ShardByStream":
    case "ShareMemHandles":
    case "Allocate":
      return none;
    default:
      return statementAccess(statement);
  }
}

/** Whether the output of the statement is written on every rank. On ranks that do not write, it keeps its contents. */
function writesOnEveryRank(statement: Statement): boolean {
  return statement.kind !== "Communication" || collectives[statement.type].writes === "all";
}

/** Whether a communication posted at a step is waited for in the same iteration, on the worker's stream. */
function waits(
  program: HostProgram,
  steps: readonly Step[],
  worker: Scalar,
): (id: ExprId, posted: number, guards: readonly Guard[]) => boolean {
  const found = new Map<ExprId, { readonly position: number; readonly guards: readonly Guard[] }[]>();
  for (const [position, { statement, guards, stream }] of steps.entries()) {
    if (statement.kind !== "Wait" || !isStreamOf(program, stream, worker)) continue;
    found.set(statement.target, [...(found.get(statement.target) ?? []), { position, guards }]);
  }
  return (id, posted, guards) =>
    (found.get(id) ?? []).some((wait) => wait.position > posted && follows(wait.guards, guards));
}

/** A slice of a candidate, or a slice of a slice. */
interface View {
  readonly of: TensorId;
  /** Whether it covers all of the device's data of the iteration's slice. */
  readonly whole: boolean;
  readonly position: number;
  readonly guards: readonly Guard[];
}

interface Views {
  readonly byTensor: ReadonlyMap<TensorId, View>;
  readonly slicesOf: ReadonlyMap<TensorId, readonly Slicing[]>;
  readonly unfit: ReadonlySet<TensorId>;
}

/** The slices of `candidates` in `steps`. `unfit` are the candidates whose slices are ambiguous within an iteration. */
function collectViews(program: HostProgram, steps: readonly Step[], candidates: ReadonlySet<TensorId>): Views {
  const byTensor = new Map<TensorId, View>();
  const slicesOf = new Map<TensorId, Slicing[]>();
  const unfit = new Set<TensorId>();
  for (const [position, { statement, guards }] of steps.entries()) {
    if (statement.kind === "ForLoop") {
      for (const tensor of namedIn(statement.body)) {
        if (candidates.has(tensor)) unfit.add(tensor);
        const view = byTensor.get(tensor);
        if (view !== undefined) unfit.add(view.of);
      }
    }
    if (!isSlicing(statement)) continue;
    const { input, output, axis } = statement;
    const outer = byTensor.get(input);
    const again = byTensor.get(output);
    if (again !== undefined) unfit.add(again.of);
    if (candidates.has(input)) {
      slicesOf.set(input, [...(slicesOf.get(input) ?? []), statement]);
      byTensor.set(output, { of: input, whole: true, position, guards });
    } else if (outer !== undefined) {
      const from = at(program.tensors, input);
      const isOnlyIndex = typeOfWhole(from, at(from.domain.logical, axis)) !== null;
      const whole = outer.whole && statement.kind === "HirAliasSelect" && isOnlyIndex;
      byTensor.set(output, { of: outer.of, whole, position, guards: [...outer.guards, ...guards] });
    }
  }
  return { byTensor, slicesOf, unfit };
}

function namedIn(body: readonly Statement[]): readonly TensorId[] {
  return body.flatMap((statement): readonly TensorId[] => {
    if (statement.kind === "ForLoop") return namedIn(statement.body);
    if (statement.kind === "IfThenElse") return [...namedIn(statement.then), ...namedIn(statement.else)];
    const { reads, writes } = statementAccess(statement);
    return [...reads, ...writes];
  });
}

// One iteration of a loop as a straight list of statements, each with the branches around it and the current stream. A
// predicate has one value in an iteration: branches on equal predicates are taken together.

/** A branch that a statement is in. */
interface Guard {
  readonly predicate: Scalar;
  readonly taken: boolean;
}

interface Step {
  readonly statement: Statement;
  readonly guards: readonly Guard[];
  /** Null if unknown: before the first SetCurrentStream, or after branches that leave different streams current. */
  readonly stream: StreamId | null;
}

/** The statements of `loop` in order. A nested loop is one step. A branch is a step before the statements in it. */
function iterationSteps(loop: ForLoop): readonly Step[] {
  const steps: Step[] = [];
  const visit = (body: readonly Statement[], guards: readonly Guard[], entered: StreamId | null): StreamId | null => {
    let stream = entered;
    for (const statement of body) {
      steps.push({ statement, guards, stream });
      if (statement.kind === "SetCurrentStream") stream = statement.stream;
      else if (statement.kind === "ForLoop") stream = null;
      else if (statement.kind === "IfThenElse") {
        const { predicate } = statement;
        const then = visit(statement.then, [...guards, { predicate, taken: true }], stream);
        const otherwise = visit(statement.else, [...guards, { predicate, taken: false }], stream);
        stream = then === otherwise ? then : null;
      }
    }
    return stream;
  };
  visit(loop.body, [], null);
  return steps;
}

/** Whether `given` implies all of `guards`. */
function follows(guards: readonly Guard[], given: readonly Guard[]): boolean {
  return guards.every((guard) => given.some((other) => sameGuard(guard, other)));
}

/** Whether `given` implies that one of `alternatives` holds; of `p` and `not p` one always does. */
function covers(alternatives: readonly (readonly Guard[])[], given: readonly Guard[]): boolean {
  if (alternatives.some((guards) => follows(guards, given))) return true;
  const possible = alternatives.filter(
    (guards) => !guards.some((guard) => given.some((other) => excludes(guard, other))),
  );
  const open = possible.flat().find((guard) => !given.some((other) => sameGuard(guard, other)));
  if (open === undefined) return false;
  return [true, false].every((taken) => covers(possible, [...given, { ...open, taken }]));
}

function sameGuard(a: Guard, b: Guard): boolean {
  return a.taken === b.taken && sameScalar(a.predicate, b.predicate);
}

function excludes(a: Guard, b: Guard): boolean {
  return a.taken !== b.taken && sameScalar(a.predicate, b.predicate);
}

/** Whether the stream is the one of index value `index`. */
function isStreamOf({ streams }: Pick<HostProgram, "streams">, id: StreamId | null, index: Scalar): boolean {
  const own = id === null ? null : (streams[id]?.index ?? null);
  return own !== null && sameScalar(own, index);
}

/* Slices of buffers in loops: an index of an axis (HirAliasSelect) or a chunk of it (ShardByStream). */

/** The logical position of the sliced axis, and how many chunks the slices are. A chunk of one index is an index. */
function slicedAxisOf(
  { tensors }: HostProgram,
  statement: Slicing,
): { readonly axis: number; readonly chunks: Scalar | null } {
  if (statement.kind === "HirAliasSelect") return { axis: statement.axis, chunks: null };
  const { logical } = at(tensors, statement.input).domain;
  const own = at(withoutReductions(logical), statement.axis);
  return {
    axis: logical.findIndex(({ id }) => id === own.id),
    chunks: sameScalar(own.extent, statement.parts) ? null : statement.parts,
  };
}

/**
 * Whether a statement writes as much of a slice of `of` as the slice is long. A slot has room for the longest chunk, and
 * what ops and collectives make from shorter chunks is as short. What arrives from a peer is not. And a gather of shares
 * that are no chunks must know which chunk it gathers.
 */
function knowsLengths(
  { tensors, body }: HostProgram,
  statement: Statement,
  of: TensorId,
  slices: ReadonlySet<TensorId>,
): boolean {
  const isOfTeam = isTeamCommunication(statement);
  if (statement.kind !== "P2PCommunication" && !isOfTeam) return true;
  const gathers = statement.kind === "Communication" && statement.type !== "Broadcast";
  if (isOfTeam && slices.has(statement.input)) return true;
  const tensor = at(tensors, of);
  return walk(body).every((each) => {
    if (each.kind !== "ShardByStream" || each.input !== of) return true;
    const axis = at(withoutReductions(tensor.domain.logical), each.axis);
    return !gathers && (sameScalar(axis.extent, each.parts) || hasEvenChunks(tensor, axis, each.parts));
  });
}

/** Whether all chunks are known to be equal on all devices. */
function hasEvenChunks({ domain }: Tensor, axis: IterDomain, parts: Scalar): boolean {
  const [size, count] = [constantValue(axis.extent), constantValue(parts)];
  if (size === null || count === null || size % count !== 0) return false;
  return isEven(cutOf(domain, axis));
}
