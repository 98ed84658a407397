/**
 * Compares every kernel on this rank's GPU with the oracle: the cases of test/gpu, one row for all that pass and one
 * for each that fails.
 */
import { createCudaBackend } from "../../src/cuda.ts";
import { soloRendezvous } from "../../src/backends/cuda/world.ts";
import { checkCase } from "../../test/gpu/check-case.ts";
import { expectationsOf } from "../../test/gpu/expectation.ts";
import { modelCases } from "../../test/gpu/model-cases.ts";
import { singleGpuCases } from "../../test/gpu/single-gpu-cases.ts";
import { type PartContext, type Row, rowOf } from "./rows.ts";

export async function* kernelRows({ world }: PartContext): AsyncGenerator<Row> {
  // Cases are distributed over the ranks, because every rank has its own GPU.
  const own = [...singleGpuCases, ...modelCases].filter((_, i) => i % world.worldSize === world.rank);
  const rendezvous = { ...soloRendezvous(), localRank: world.localRank };
  let passed = 0;
  for (const { name, build } of own) {
    const on = createCudaBackend({ rendezvous, graph: "on" });
    const row = await rowOf(name, async () => {
      const fusion = build();
      const problems = await checkCase(fusion, expectationsOf(fusion), { rank: 0, devices: 1, on, repeat: 2 });
      if (problems.length > 0) throw new Error(problems.join("; "));
      return "passed";
    });
    if (row.ok) passed++;
    else yield row;
  }
  yield {
    name: "kernels against the oracle",
    ok: passed === own.length,
    text: `${passed} of ${own.length} cases passed on this rank`,
  };
}
