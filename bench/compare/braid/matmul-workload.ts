/** A primitive of one GEMM as a workload. */
import type { Prepared } from "../../../src/backends/backend.ts";
import { invariant } from "../../../src/support/invariant.ts";
import type { Outcome } from "../../../src/launch/exchange.ts";
import type { Problem } from "../primitives.ts";
import { checkSamples } from "../sampled-check.ts";
import type { Setting, Workload } from "../workload.ts";
import type { Matrices } from "../../../src/numerics/tensor/random-matrices.ts";
import { createInputs } from "./operands.ts";
import { type Planned, planOwn } from "./plan-own.ts";

export function matmulWorkload(problem: Problem, setting: Setting, matrices: Matrices, seed: number): Workload {
  const inputs = createInputs(matrices);
  const { primitive, m, n, k, dtype } = problem;
  return {
    plan: (implementation) => {
      const planned = planOwn(implementation, problem, setting);
      return {
        ...planned,
        tracing: null,
        input: (position, rank) => inputs(planned.layout, position, rank),
        check: async (prepared, ranks) => checkOutputs(planned, prepared, ranks, matrices),
      };
    },
    setup: () => ({ primitive, m, n, k, dtype, seed }),
  };
}

function checkOutputs(
  { layout, program }: Planned,
  prepared: Prepared,
  ranks: readonly number[],
  matrices: Matrices,
): Outcome<number> {
  const outputs = program.buffers.filter(({ role, rank }) => role === "output" && ranks.includes(rank));
  const checks = outputs.map(({ id, rank, position }) => {
    invariant(position !== null, "outputs have positions", { id });
    return checkSamples(layout, rank, position, prepared.read(id), matrices);
  });
  if (checks.some(({ compared }) => compared === 0)) {
    return { kind: "failed", why: "not checked: a sum has so many terms that its error has no bound" };
  }
  return { kind: "done", value: Math.max(0, ...checks.map(({ partOfBound }) => partOfBound)) };
}
