/**
 * One iteration of a point-to-point form as a rooted collective, whose root is the iteration: the device that has the shard, or that
 * keeps the chunk. Source: nvFuser's StreamParallelType with offset_stream_indexing_by_rank off; the Gather is ours.
 */
import type { Op } from "../../../ir/ops/op.ts";
import { constant } from "../../../ir/scalar/scalar.ts";
import type { Statement } from "../../../host/nodes.ts";
import { type CommunicationType, reduceOpOf } from "../../../host/collectives.ts";
import { at } from "../../../support/invariant.ts";
import { unreachable } from "../../../support/unreachable.ts";
import type { IterationStatements, LoopContext } from "./loop-context.ts";
import { nextExpr } from "./loop-edit.ts";
import type { PointToPointForm } from "../point-to-point-form.ts";
import { selectAt, type Slice } from "./slicer.ts";
import type { TeamPositions } from "./team-positions.ts";

const communicationOf: { readonly [K in PointToPointForm["kind"]]: CommunicationType } = {
  gather: "Broadcast",
  exchange: "Gather",
  reduce: "Reduce",
};

/** One iteration of an op as a collective with the iteration's device as root. */
export function rootedStatements(
  op: Op,
  form: PointToPointForm,
  { team }: TeamPositions,
  context: LoopContext,
): IterationStatements {
  const { edit, iteration, options } = context;
  const { input, output } = sides(op, form, context);
  const id = nextExpr(edit);
  const body: readonly Statement[] = [
    ...input.binding,
    ...output.binding,
    {
      kind: "Communication",
      id,
      type: communicationOf[form.kind],
      team,
      root: iteration,
      reduceOp: op.kind === "Reduction" ? reduceOpOf[op.op] : null,
      input: input.slice,
      output: output.slice,
      backend: options.backend,
    },
    { kind: "Wait", target: id },
  ];
  return { body, epilogue: [] };
}

/** What the collective reads and writes: on every rank, though only the root's shard, or only its output, counts. */
function sides(
  op: Op,
  form: PointToPointForm,
  { edit, slicer, index }: LoopContext,
): { readonly input: Slice; readonly output: Slice } {
  const operand = at(op.inputs, 0);
  switch (form.kind) {
    case "gather":
      return { input: { slice: operand, binding: [] }, output: slicer.slice(op.output, form.stream) };
    case "exchange": {
      // The root gets the whole of what it keeps, from all devices at once.
      const input = slicer.slice(operand, form.scattered.from);
      return { input, output: selectAt(edit, op.output, form.scattered.to, constant(0)) };
    }
    case "reduce": {
      // A reduced axis takes no memory, so that its select is the whole output.
      const input = slicer.slice(operand, form.scattered.from);
      return { input, output: selectAt(edit, op.output, form.stream, index) };
    }
    default:
      return unreachable(form);
  }
}
