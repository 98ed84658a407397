/** Braid's implementations as contenders. Inputs are written once, before the first run. */
import type { Prepared } from "../../../src/backends/backend.ts";
import type { ContenderPlace } from "../../../src/cli/ranks/places.ts";
import type { Contender, Timing } from "../contender.ts";
import { traceRun } from "../traced-run.ts";
import type { Ready } from "../workload.ts";

/** Collective: all ranks call it together. */
export async function prepareOwn(ready: Ready, place: ContenderPlace): Promise<Contender> {
  const { implementation, program, reason } = ready;
  const prepared = await place.group.prepare(program);
  for (const { id, role, rank, position } of program.buffers) {
    if (role !== "input" || position === null || !place.ranks.includes(rank)) continue;
    prepared.write(id, ready.input(position, rank));
  }
  return {
    implementation,
    note: reason,
    turn: async (runs) => {
      const timings: Timing[] = [];
      for (let run = 0; run < runs; run++) {
        await place.barrier();
        timings.push(await timedRun(prepared, place.timeout));
      }
      return { kind: "done", value: timings };
    },
    row: async (runs) => {
      await place.barrier();
      const { hostMilliseconds } = await prepared.execute({ runs, timeout: runs * place.timeout });
      return { kind: "done", value: hostMilliseconds === undefined ? null : (1000 * hostMilliseconds) / runs };
    },
    check: () => ready.check(prepared, place.ranks),
    trace: async (exchange) => {
      if (ready.tracing === null) return { kind: "done", value: null };
      return traceRun({ program, prepared, ...place, ...ready.tracing }, exchange);
    },
    release: () => prepared.release(),
  };
}

async function timedRun(prepared: Prepared, timeout: number): Promise<Timing> {
  const report = await prepared.execute({ timeout, deviceTime: true });
  const { milliseconds, deviceMilliseconds = milliseconds, hostMilliseconds } = report;
  return {
    milliseconds: deviceMilliseconds,
    hostMicroseconds: hostMilliseconds === undefined ? null : 1000 * hostMilliseconds,
  };
}
