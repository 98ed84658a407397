/**
 * Replaces every op that reshards, at top level or directly in a loop, by the communications that carry it.
 *
 *   T5[_, _] = Set(T4[DIDx, _])
 * becomes
 *   T5 = ALLOCATE(...); Communication 0 (type=Allgather, ..., input=T4, output=T5); Wait Communication 0
 *
 * An ALLOCATE of a slice that is bound already does nothing at run time. Source: nvFuser's ConvertOpToCommunication.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import type { Tensor } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import { printTensor } from "../../ir/print-tensor.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import type { ExprId, HostProgram, Statement } from "../../host/nodes.ts";
import { isOp } from "../../host/statement-kinds.ts";
import { makeId } from "../../support/ids.ts";
import { at } from "../../support/invariant.ts";
import { allocationSize } from "../../ir/allocation-size.ts";
import { placementsOf, planCommunications } from "./communication-plan.ts";
import { isCommunicable } from "../reshard/insert-resharding-sets-before.ts";
import { opPlace } from "../op-text.ts";
import type { Pass, PassContext } from "../pass.ts";
import { reshardingStep } from "../reshard/resharding-step.ts";
import { isOnDevice, isResharding } from "../reshard/sharding.ts";

export const convertOpToCommunication: Pass<"looped", "communicating"> = {
  name: "convert-op-to-communication",
  from: "looped",
  to: "communicating",
  run: (program, context) => {
    const tensors = [...program.tensors];
    let exprCount = program.exprCount;
    let changed = false;
    const convert = (statement: Statement): readonly Statement[] => {
      if (!isOp(statement) || !isResharding(statement, tensors)) return [statement];
      const converted = communications(statement, tensors, exprCount, context);
      exprCount += converted.filter((made) => made.kind === "Communication").length;
      changed = true;
      return converted;
    };
    const body = program.body.flatMap((statement): readonly Statement[] =>
      statement.kind === "ForLoop" ? [{ ...statement, body: statement.body.flatMap(convert) }] : convert(statement),
    );
    return changed ? ({ ...program, tensors, body, exprCount } satisfies HostProgram) : program;
  },
};

function communications(
  op: Op,
  tensors: Tensor[],
  firstId: number,
  { rank, options }: PassContext,
): readonly Statement[] {
  requireOneStep(op, tensors);
  const plans = planCommunications(op, tensors, rank);
  const input = at(tensors, at(op.inputs, 0));
  const output = at(tensors, op.output);
  for (const tensor of [input, output]) {
    if (tensor.memory === "local") tensors[tensor.id] = { ...tensor, memory: "global" };
  }
  const memory = output.memory === "symmetric" ? "symmetric" : "global";
  const allocate: Statement = {
    kind: "Allocate",
    tensor: op.output,
    memory,
    size: allocationSize(output),
    zeroInit: false,
  };
  return plans.flatMap(({ type, team, root, reduceOp }, i): readonly Statement[] => {
    const id = makeId<ExprId>(firstId + i);
    return [
      ...(isOnDevice(output, rank) ? [allocate] : []),
      {
        kind: "Communication",
        id,
        type,
        team,
        root: root === null ? null : constant(root),
        reduceOp,
        input: input.id,
        output: output.id,
        backend: options.backend,
      },
      { kind: "Wait", target: id },
    ];
  });
}

/** Throws `resharding-unsupported`: the pass decompose-reshardings, which makes single steps, was left out. */
function requireOneStep(op: Op, tensors: readonly Tensor[]): void {
  const help = "run the pass decompose-reshardings before, or put set() between the two shardings";
  const placements = isCommunicable(op, tensors) ? placementsOf(op, tensors) : null;
  if (placements === null) {
    return fail({
      code: "resharding-unsupported",
      message: "an op both computes and changes the sharding",
      place: opPlace(op),
      found: op.kind,
      expected: "a set, or a reduction of the sharded axis alone",
      help,
    });
  }
  const { from, to, reduced } = placements;
  if (reshardingStep(from, to, reduced) !== null) return;
  fail({
    code: "resharding-unsupported",
    message: "no one communication carries this change of sharding",
    place: opPlace(op),
    found: `${printTensor(at(tensors, at(op.inputs, 0)))} to ${printTensor(at(tensors, op.output))}`,
    expected: "a change along one DID type, or to another mesh",
    help,
  });
}
