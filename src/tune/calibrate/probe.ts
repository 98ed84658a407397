/** Times one small program on the machine that is calibrated. */
import type { Program } from "../../commands/program.ts";
import type { ScheduleOptions } from "../../schedule/schedule.ts";
import { compile, requireVerified, verified } from "../../compile/compile.ts";
import type { GraphUse } from "../../cuda.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import type { Fusion } from "../../ir/api/fusion.ts";
import type { DType } from "../../numerics/dtype.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import { at } from "../../support/invariant.ts";
import type { Outcome } from "../../bench/contender.ts";
import type { Exchange } from "../../bench/exchange.ts";
import type { Matrices } from "../../bench/braid/matrices.ts";
import type { Places } from "../../bench/braid/places.ts";

export interface ProbeHost {
  readonly devices: number;
  readonly places: Places;
  readonly exchange: Exchange;
  readonly matricesOf: (dtype: DType) => Matrices;
}

export interface ProbeOptions {
  readonly lowering?: Partial<LoweringOptions>;
  readonly streams?: number;
  readonly schedule?: ScheduleOptions;
  /** Of what is linked, behind the schedule. */
  readonly rewrite?: (program: Program) => Program;
  /** Runs are replays of graphs, where the back end has them, if not given. */
  readonly graph?: GraphUse;
}

export interface Probed {
  /** Microseconds of a run on its slowest rank: the least of all runs, and their median. */
  readonly least: number;
  readonly median: number;
  /** What the host took at least to issue it; 0 where that is not told. */
  readonly host: number;
  /** Commands of rank 0. */
  readonly commands: number;
}

const warmUp = 5;
const runs = 31;

/** All ranks call it together. Throws what recording and the back end throw. */
export async function probe(host: ProbeHost, fusion: Fusion, options: ProbeOptions = {}): Promise<Probed> {
  const { lowering = {}, streams = 4, schedule = {}, graph = "auto", rewrite } = options;
  const compiled = requireVerified(
    compile(fusion, { ...lowering, devices: host.devices, streams, schedule, notes: false }),
  );
  const program = rewrite?.(compiled.program) ?? compiled.program;
  if (program !== compiled.program) requireVerified(verified({ ...compiled, program }, { notes: false }));
  const place = await host.places.placeFor(graph);
  const prepared = await place.group.prepare(program);
  try {
    for (const { id, role, rank, dtype, bytes } of program.buffers) {
      if (role !== "input" || !place.ranks.includes(rank)) continue;
      const matrices = host.matricesOf(dtype);
      const data = new Uint8Array(bytes);
      matrices.fill(`input ${id}`, 0, bytes / matrices.width, data, 0);
      prepared.write(id, data);
    }
    const own: number[] = [];
    for (let run = 0; run < warmUp + runs; run++) {
      await place.meet();
      const report = await prepared.execute({ timeout: place.timeout, deviceTime: true });
      if (run >= warmUp) {
        own.push(1000 * (report.deviceMilliseconds ?? report.milliseconds), 1000 * (report.hostMilliseconds ?? 0));
      }
    }
    const all = valueOf(await host.exchange({ kind: "done", value: own }));
    const slowest = own.map((_, i) => Math.max(...all.map((each) => at(each, i))));
    const times = slowest.filter((_, i) => i % 2 === 0).sort((a, b) => a - b);
    return {
      least: at(times, 0),
      median: at(times, times.length >> 1),
      host: Math.min(...slowest.filter((_, i) => i % 2 === 1)),
      commands: at(program.ranks, 0).commands.length,
    };
  } finally {
    prepared.release();
  }
}

function valueOf<T>(outcome: Outcome<T>): T {
  if (outcome.kind === "done") return outcome.value;
  return fail({
    code: "rank-failed",
    message: "a rank could not measure",
    place: { kind: "option", text: "braid calibrate" },
    found: outcome.why,
    expected: "every rank to run the probes",
    help: "braid doctor says what is missing",
  });
}
