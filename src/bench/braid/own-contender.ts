/** Braid's implementations as contenders. Inputs are written once, before the first run. */
import type { Group, Prepared } from "../../backends/backend.ts";
import { invariant } from "../../support/invariant.ts";
import type { Contender, Outcome, Timing } from "../contender.ts";
import type { Matrices } from "./matrices.ts";
import type { Inputs } from "./operands.ts";
import type { Planned } from "./plan-own.ts";
import { checkSamples } from "../sampled-check.ts";

export interface Place {
  readonly group: Group;
  /** The ranks that this process holds. */
  readonly ranks: readonly number[];
  /** A barrier of all ranks, on their devices too if they have some. */
  readonly barrier: () => Promise<void>;
  /** Seconds for one run. */
  readonly timeout: number;
}

/** Collective: all ranks call it together. */
export async function prepareOwn(
  planned: Planned,
  place: Place,
  matrices: Matrices,
  inputs: Inputs,
): Promise<Contender> {
  const { implementation, layout, program, reason } = planned;
  const prepared = await place.group.prepare(program);
  for (const { id, role, rank, position } of program.buffers) {
    if (role !== "input" || position === null || !place.ranks.includes(rank)) continue;
    prepared.write(id, inputs(layout, position, rank));
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
    check: async () => checkOutputs(planned, prepared, place.ranks, matrices),
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
