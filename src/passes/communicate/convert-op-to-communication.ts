/**
 * Replaces every resharding op, at top level or directly in a loop, by communications.
 *
 *   T5[_, _] = Set(T4[DIDx, _])
 * becomes
 *   T5 = ALLOCATE(...); Communication 0 (type=Allgather, ..., input=T4, output=T5); Wait Communication 0
 *
 * An ALLOCATE of a slice that is already bound does nothing at run time. A chunk (ShardByStream) has none: there it would
 * ask for memory of its own. Source: nvFuser's ConvertOpToCommunication.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import { reduceOpOf } from "../../host/collectives.ts";
import type { ExprId, HostProgram, Statement } from "../../host/nodes.ts";
import { isOp, walk } from "../../host/traverse.ts";
import { allocationSize, type Tensor, type TensorId } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import { printTensor } from "../../ir/print-tensor.ts";
import { constant, type Scalar } from "../../ir/scalar/scalar.ts";
import { makeId, at } from "../../support/invariant.ts";
import { opPlace } from "../op-text.ts";
import type { Pass, PassContext } from "../pass.ts";
import { backendOfTeam, decided, numberOfRank, teamOfRank } from "../rank-class.ts";
import { layoutsOf, type OpLayouts, isCommunicable, isOnDevice, isResharding } from "../routes/layouts.ts";
import { permutationPeer, type ReshardingStep, reshardingStep } from "../routes/steps/step.ts";
import { stepTeams } from "../routes/steps/teams.ts";

export const convertOpToCommunication: Pass<"looped", "communicating"> = {
  name: "convert-op-to-communication",
  from: "looped",
  to: "communicating",
  run: (program, context) => {
    const tensors = [...program.tensors];
    let exprCount = program.exprCount;
    let changed = false;
    const chunks = new Set(walk(program.body).flatMap((each) => (each.kind === "ShardByStream" ? [each.output] : [])));
    const convert = (statement: Statement): readonly Statement[] => {
      if (!isOp(statement) || !isResharding(statement, tensors)) return [statement];
      const converted = communications(statement, tensors, chunks, exprCount, context);
      exprCount += converted.filter(({ kind }) => kind === "Wait").length;
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
  chunks: ReadonlySet<TensorId>,
  firstId: number,
  context: PassContext,
): readonly Statement[] {
  const { from, to, step } = requireOneStep(op, tensors, context.options.nvfuserLimits);
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
    fresh: false,
  };
  const teamsOn = stepTeams(step, from.mesh, to.mesh);
  const teams = Array.from({ length: decided(context, (rank) => teamsOn(rank).length) }, (_, i) => ({
    team: teamOfRank(context, (rank) => at(teamsOn(rank), i).team),
    root: decided(context, (rank) => at(teamsOn(rank), i).root),
  }));
  const isAllocated = !chunks.has(output.id) && decided(context, (rank) => isOnDevice(output, rank));
  return teams.flatMap(({ team, root }, i): readonly Statement[] => {
    const id = makeId<ExprId>(firstId + i);
    const positionOf = (deviceOn: (rank: number) => number): Scalar =>
      numberOfRank(context, (rank) => at(teamsOn(rank), i).team.indexOf(deviceOn(rank)));
    const common = { id, team, input: input.id, output: output.id, backend: backendOfTeam(context, team) };
    return [
      ...(isAllocated ? [allocate] : []),
      step.kind === "CollectivePermute"
        ? {
            kind: "CollectivePermute",
            ...common,
            sendPeer: positionOf((rank) => permutationPeer(to, from, rank)),
            recvPeer: positionOf((rank) => permutationPeer(from, to, rank)),
          }
        : {
            kind: "Communication",
            ...common,
            type: step.kind,
            root: root === null ? null : constant(root),
            reduceOp: op.kind === "Reduction" ? reduceOpOf[op.op] : from.pending.length === 0 ? null : "sum",
          },
      { kind: "Wait", target: id },
    ];
  });
}

/** Throws `resharding-unsupported` for an op that a disabled pass would have rewritten. */
function requireOneStep(
  op: Op,
  tensors: readonly Tensor[],
  nvfuserLimits: boolean,
): OpLayouts & { readonly step: ReshardingStep } {
  const layouts = isCommunicable(op, tensors) ? layoutsOf(op, tensors) : null;
  if (layouts === null) {
    return fail("resharding-unsupported", "an op both computes and changes the sharding", {
      place: opPlace(op),
      found: op.kind,
      expected: "a set, or a reduction of the sharded axis alone",
      help: "first run the pass insert-routes, or put set() between the shardings",
    });
  }
  const step = reshardingStep(layouts.from, layouts.to, nvfuserLimits);
  if (step !== null) return { ...layouts, step };
  return fail("resharding-unsupported", "no single communication makes this change of sharding", {
    place: opPlace(op),
    found: `${printTensor(at(tensors, at(op.inputs, 0)))} to ${printTensor(at(tensors, op.output))}`,
    expected: "a change along one DID type, or to another mesh",
    help: "first run the pass insert-routes, or put set() between the two shardings",
  });
}
