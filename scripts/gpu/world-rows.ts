/**
 * Runs programs over all GPUs, in every idiom, eager and replayed. A failed run ends the part, because the streams of
 * its Group may wait forever.
 */
import { createCudaBackend } from "../../src/cuda.ts";
import { checkCase } from "../../test/gpu/check-case.ts";
import { expectationsOf } from "../../test/gpu/expectation.ts";
import { worldCases } from "../../test/gpu/world-cases.ts";
import { goesOn } from "./goes-on.ts";
import { labelOf } from "./lowering-label.ts";
import { type PartContext, type Row, rowOf } from "./rows.ts";

export async function* worldRows({ world }: PartContext): AsyncGenerator<Row> {
  const devices = world.worldSize;
  for (const { name, build, options } of worldCases) {
    const expectations = expectationsOf(build(devices));
    for (const lowering of options) {
      for (const graph of ["off", "on"] as const) {
        yield await rowOf(`${name}, ${labelOf(lowering)}, graph ${graph}`, async () => {
          const start = performance.now();
          // Each case has its own Group, because opening and closing are part of the test.
          const on = createCudaBackend({ rendezvous: world, graph, timeout: 20 });
          const problems = await checkCase(build(devices), expectations, {
            ...lowering,
            rank: world.rank,
            devices,
            on,
            repeat: 4,
            timeout: 20,
          });
          if (problems.length > 0) throw new Error(problems.join("; "));
          return `${(performance.now() - start).toFixed(0)} ms`;
        });
        if (!(await goesOn(world))) return;
      }
    }
  }
}
