/** One iteration of a point-to-point form by the schedule that the options ask for, and the chain of streams behind it. */
import type { Op } from "../../../ir/ops/op.ts";
import { binary, constant, named } from "../../../ir/scalar/scalar.ts";
import type { Statement } from "../../../host/nodes.ts";
import { exchangeStatements } from "./exchange-statements.ts";
import type { IterationStatements, LoopContext } from "./loop-context.ts";
import { addStream } from "./loop-edit.ts";
import type { PointToPointForm } from "../point-to-point-form.ts";
import { rootedStatements } from "./rooted-statements.ts";
import { teamPositions } from "./team-positions.ts";

export function pointToPointStatements(op: Op, form: PointToPointForm, context: LoopContext): IterationStatements {
  const positions = teamPositions(form.mesh, form.type, context.rank);
  const { body, epilogue } =
    context.options.p2p === "broadcast"
      ? rootedStatements(op, form, positions, context)
      : exchangeStatements(op, form, positions, context);
  return { body: [...body, ...chainStreams(context)], epilogue };
}

/** With interStreamSync stream i+1 waits for stream i, in the first round over the streams. */
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
