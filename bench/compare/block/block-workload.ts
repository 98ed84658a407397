/** A transformer block as a workload. */
import type { Program } from "../../../src/commands/program.ts";
import { serialOf } from "../../../src/explain/serial-program.ts";
import { shapeOf } from "../../../src/ir/sizes.ts";
import { at } from "../../../src/support/invariant.ts";
import type { Setting, Workload } from "../workload.ts";
import { createBlockMatrices } from "./block-matrices.ts";
import type { BlockProblem } from "./block-problem.ts";
import { type Ask, blockSetup } from "./block-reference.ts";
import { createBlockCheck } from "./check-block.ts";
import { unchunked, wholeBlock } from "./block-fusion.ts";
import { planBlock } from "./plan-block.ts";

/** `ask`: PyTorch's process, which checks results of large blocks. */
export function blockWorkload(problem: BlockProblem, setting: Setting, seed: number, ask: Ask): Workload {
  const matrices = createBlockMatrices(seed);
  let serial: Program | null = null;
  const serialProgram = (): Program | null => {
    const { devices } = problem;
    serial ??= serialOf(wholeBlock(problem, unchunked).fusion, { devices, on: setting.on });
    return serial;
  };
  const check = createBlockCheck(problem, matrices, ask);
  return {
    plan: (implementation) => {
      const { block, compilation, reason } = planBlock(implementation, problem, setting);
      const { program, signature, sizes } = compilation;
      return {
        implementation,
        program,
        reason,
        tracing: {
          profile: setting.profile,
          serial: block.form === "whole" && setting.profile !== null ? serialProgram() : null,
        },
        input: (position, rank) => {
          const tensor = at(signature.tensors, at(signature.inputs, position));
          return matrices.part(at(block.inputs, position), tensor, shapeOf(tensor, sizes), rank);
        },
        check: (prepared, ranks) => check({ block, compilation, prepared, ranks }),
      };
    },
    setup: () => blockSetup(problem, matrices),
  };
}
