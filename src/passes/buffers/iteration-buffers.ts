/**
 * Finds the buffers of which each iteration of a loop uses one slice that it has written itself, on the worker stream of the iteration
 * alone. Iterations i and i + numberOfStreams run on one stream, one after the other, so that they can use one slot in turn.
 *
 * What must hold of every access in the loop:
 * - It goes through a slice, of one axis at one index, that the iteration has bound before.
 * - It is on Stream ( index % numberOfStreams ).
 * - What it reads, the iteration has written before, all of the slice on all paths.
 * - A communication is waited for in the iteration, on that stream. Then the peers' accesses lie between its post and its Wait: the Wait of
 *   a send comes before anything that iteration i + numberOfStreams writes to the slot, and what a peer puts there comes after that
 *   iteration has signalled that it is ready.
 */
import type { TensorId } from "../../ir/domain.ts";
import { binary, named, type Scalar } from "../../ir/scalar/scalar.ts";
import { sameScalar } from "../../ir/scalar/fold.ts";
import type { ExprId, ForLoop, HirAliasSelect, HostProgram, Statement } from "../../host/nodes.ts";
import { collectives } from "../../host/collectives.ts";
import { accessesOf, isOp } from "../../host/traverse.ts";
import { rowOf } from "../../ir/ops/rows.ts";
import { covers, follows, type Guard, isStreamOf, iterationSteps, type Step } from "./iteration-steps.ts";
import { collectViews, type View } from "./iteration-views.ts";

export interface IterationBuffer {
  readonly tensor: TensorId;
  /** The position of the sliced axis in the logical domain. */
  readonly axis: number;
  /** The statements that slice it. */
  readonly slices: readonly HirAliasSelect[];
}

/** The worker's stream, and the slot, of an iteration. */
export function slotIndex(loop: ForLoop): Scalar {
  return binary("mod", loop.index, named("numberOfStreams"));
}

/** The tensors that have memory of their own outside all loops. */
export function tensorsWithMemory({ inputs, outputs, body }: HostProgram): ReadonlySet<TensorId> {
  const allocated = body.flatMap((statement) => (statement.kind === "Allocate" ? [statement.tensor] : []));
  return new Set([...inputs, ...outputs, ...allocated]);
}

/** Those of `candidates` that the iterations of `loop` use as said above. `withMemory`: the program's `tensorsWithMemory`. */
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
  for (const { statement } of steps) if (statement.kind === "HirAliasSelect") slices.add(statement.output);
  const bindsAnew = (statement: Statement): boolean =>
    isOp(statement) &&
    // Without memory its output becomes a view of the input, and would outlive the iteration.
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
      else if (statement.kind === "Communication" || statement.kind === "P2PCommunication") {
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
      if (view === undefined || !view.whole || !writesOnEveryRank(statement)) continue;
      written.set(view.of, [...(written.get(view.of) ?? []), guards]);
    }
  }
  return [...views.slicesOf].flatMap(([tensor, slicesOfTensor]) => {
    const [first] = slicesOfTensor;
    if (first === undefined || unfit.has(tensor)) return [];
    const alike = slicesOfTensor.every(({ axis, index }) => axis === first.axis && sameScalar(index, first.index));
    return alike ? [{ tensor, axis: first.axis, slices: slicesOfTensor }] : [];
  });
}

interface GroupUse {
  readonly views: View[];
  readonly guards: readonly Guard[];
}

const none = { reads: [], writes: [] };

/** The tensors whose elements a statement uses: not those that it binds or declares. */
function dataAccesses(statement: Statement): ReturnType<typeof accessesOf> {
  switch (statement.kind) {
    case "HirAliasSelect":
    case "ShareMemHandles":
    case "Allocate":
      return none;
    default:
      return accessesOf(statement);
  }
}

/** Of a communication that only some ranks write, the output keeps on the others what it held. */
function writesOnEveryRank(statement: Statement): boolean {
  return statement.kind !== "Communication" || collectives[statement.type].writes === "all";
}

/** Whether a communication that is posted at a step is waited for in the same iteration, on the worker's stream. */
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
