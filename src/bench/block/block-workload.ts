/** A transformer block as a workload. */
import { shapeOf } from "../../ir/sizes.ts";
import { at } from "../../support/invariant.ts";
import type { Setting, Workload } from "../workload.ts";
import { createBlockMatrices } from "./block-matrices.ts";
import type { BlockProblem } from "./block-problem.ts";
import { createBlockCheck } from "./check-block.ts";
import { planBlock } from "./plan-block.ts";

export function blockWorkload(problem: BlockProblem, setting: Setting, seed: number): Workload {
  const matrices = createBlockMatrices(seed);
  const check = createBlockCheck(problem, matrices);
  const { primitive, model, cut, pass, dtype } = problem;
  return {
    plan: (implementation) => {
      const { block, compilation, reason } = planBlock(implementation, problem, setting);
      const { program, signature, sizes } = compilation;
      return {
        implementation,
        program,
        reason,
        input: (position, rank) => {
          const tensor = at(signature.tensors, at(signature.inputs, position));
          return matrices.part(at(block.inputs, position), tensor, shapeOf(tensor, sizes), rank);
        },
        check: async (prepared, ranks) => check({ block, compilation, prepared, ranks }),
      };
    },
    setup: { primitive, model, cut, pass, dtype, seed },
  };
}
