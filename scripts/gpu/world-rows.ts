/** Programs over all GPUs, in every idiom, eager and replayed. A failed run ends the part: the streams of its Group may wait for ever. */
import { createCudaBackend } from "../../src/cuda.ts";
import { checkCase } from "../../test/gpu/check-case.ts";
import { worldCases } from "../../test/gpu/world-cases.ts";
import { type PartContext, type Row, rowOf } from "./rows.ts";

export async function* worldRows({ world }: PartContext): AsyncGenerator<Row> {
  const devices = world.worldSize;
  for (const { name, build, options } of worldCases) {
    for (const lowering of options) {
      for (const graph of ["off", "on"] as const) {
        const label = [name, lowering.communicatorBackend, lowering.p2pProtocol, `graph ${graph}`]
          .filter(Boolean)
          .join(", ");
        const row = await rowOf(label, async () => {
          const start = performance.now();
          const on = createCudaBackend({ rendezvous: world, graph, timeout: 20_000 });
          const problems = await checkCase(build(devices), {
            ...lowering,
            rank: world.rank,
            devices,
            on,
            repeat: 4,
            timeout: 20_000,
          });
          if (problems.length > 0) throw new Error(problems.join("; "));
          return `${(performance.now() - start).toFixed(0)} ms`;
        });
        yield row;
        // Ranks go on together or not at all.
        const votes = await world.allGather(Uint8Array.of(world.signal.aborted ? 0 : 1));
        if (votes.some(([vote]) => vote !== 1)) return;
      }
    }
  }
}
