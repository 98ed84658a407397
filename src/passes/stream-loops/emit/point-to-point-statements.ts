/**
 * One iteration of a point-to-point form, as the options require: an exchange with one peer, or a rooted collective.
 * The root is the iteration's device, which has the shard or keeps the chunk. Source: nvFuser's StreamParallelType with
 * offset_stream_indexing_by_rank on and off; the Gather is ours.
 */
import type { Op } from "../../../ir/ops/op.ts";
import { binary, constant, named } from "../../../ir/scalar/scalar.ts";
import { type CommunicationType, reduceOpOf } from "../../../host/collectives.ts";
import type { Statement } from "../../../host/nodes.ts";
import { at } from "../../../support/invariant.ts";
import { unreachable } from "../../../support/unreachable.ts";
import { backendOfTeam } from "../../rank-class.ts";
import type { PeerForm } from "../forms.ts";
import { ownShare, pieceOf, turnOf } from "./exchange-peers.ts";
import { exchangeStatements } from "./exchange-statements.ts";
import { addStream, type IterationStatements, type LoopContext, nextExpr } from "./loop-context.ts";
import { selectAt, type Slice } from "./slicer.ts";
import { type TeamPositions, teamPositions } from "./team-positions.ts";

export function pointToPointStatements(op: Op, form: PeerForm, context: LoopContext): IterationStatements {
  const positions = teamPositions(form.mesh, form.type, context);
  const { body, epilogue } =
    context.options.p2p === "broadcast"
      ? { body: rootedStatements(op, form, positions, context), epilogue: [] }
      : exchangeStatements(op, form, positions, context);
  return { body: [...body, ...chainStreams(context)], epilogue };
}

/** With `interStreamSync`, makes stream i+1 wait for stream i, in the first round over the streams. */
function chainStreams({ edit, iteration, worker, options }: LoopContext): readonly Statement[] {
  if (!options.interStreamSync) return [];
  const following = binary("add", iteration, constant(1));
  const next = addStream(edit, following);
  return [
    {
      kind: "IfThenElse",
      predicate: binary("lt", following, named("numberOfStreams")),
      then: [
        { kind: "SetCurrentStream", stream: next },
        { kind: "Synchronize", stream: worker },
        { kind: "SetCurrentStream", stream: worker },
      ],
      else: [],
    },
  ];
}

const rootedTypes: { readonly [K in PeerForm["kind"]]: CommunicationType } = {
  gather: "Broadcast",
  exchange: "Gather",
  reduce: "Reduce",
};

function rootedStatements(op: Op, form: PeerForm, { team }: TeamPositions, context: LoopContext): readonly Statement[] {
  const { edit } = context;
  const { input, output } = rootedOperands(op, form, context);
  const id = nextExpr(edit);
  return [
    ...input.binding,
    ...output.binding,
    {
      kind: "Communication",
      id,
      type: rootedTypes[form.kind],
      team,
      root: turnOf(context, form.kind === "gather" ? form.pieces : 1),
      reduceOp: op.kind === "Reduction" ? reduceOpOf[op.op] : null,
      input: input.slice,
      output: output.slice,
      backend: backendOfTeam(context, team),
    },
    { kind: "Wait", target: id },
  ];
}

/**
 * The slices that the collective reads and writes. Every rank names both, although only the root's shard, or its
 * output, matters.
 */
function rootedOperands(
  op: Op,
  form: PeerForm,
  context: LoopContext,
): { readonly input: Slice; readonly output: Slice } {
  const { edit, slicer, index } = context;
  const operand = at(op.inputs, 0);
  switch (form.kind) {
    case "gather": {
      const input = form.pieces === 1 ? { slice: operand, binding: [] } : pieceOf(operand, form, context);
      return { input, output: slicer.slice(op.output, form.chunk) };
    }
    case "exchange": {
      // The root receives its whole chunk, from all devices at once.
      const input = slicer.slice(operand, form.scattered.from);
      return { input, output: ownShare(op.output, context, form.scattered, form.type) };
    }
    case "reduce": {
      // A reduced axis takes no memory: its slice is the whole output.
      const input = slicer.slice(operand, form.scattered.from);
      const output = selectAt(edit, op.output, form.stream, index);
      if (form.scattered.chunks === null) return { input, output };
      const own = ownShare(output.slice, context, form.scattered, form.type);
      return { input, output: { slice: own.slice, binding: [...output.binding, ...own.binding] } };
    }
    default:
      return unreachable(form);
  }
}
