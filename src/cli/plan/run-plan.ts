/**
 * Runs a plan on this machine's GPUs, a process per rank. Inputs are those that `braid run` draws for the program the
 * plan was made of, so outputs have the same fingerprints. Nothing is printed here.
 */
import { positionIn } from "../../commands/buffer.ts";
import type { FlightRecorder } from "../../backends/flight/flight-recorder.ts";
import type { NamesOf, Options } from "../../compile/options.ts";
import { openDeviceGroup } from "../../backends/cuda/cuda-backend.ts";
import { soloRendezvous } from "../../cuda.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { requireSameProgram } from "../../launch/checked-backend.ts";
import type { World } from "../../launch/join-world.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../../numerics/tensor/host-tensor.ts";
import { randomInputs } from "../../oracle/random-inputs.ts";
import { planShard, putPart } from "../../plan/shards.ts";
import type { Plan } from "../../plan/read-plan.ts";
import { at } from "../../support/invariant.ts";
import { createRandom } from "../../support/random.ts";
import { gatherBytes, gatherReports } from "../run/gather.ts";
import { fingerprint } from "../run/outputs.ts";
import { requireOutputPlace, writeOutputFiles } from "../tensor-files/output-files.ts";
import type { ProgressStep } from "../terminal/progress.ts";

export type PlanRunFlags = Pick<
  Options<NamesOf<"run">>,
  "seed" | "repeat" | "graph" | "timeout" | "outputDir" | "json"
>;

export interface PlanRunResult {
  readonly plan: string;
  readonly devices: number;
  readonly seed: number;
  /** The time of each run, of its slowest rank. */
  readonly milliseconds: readonly number[];
  readonly outputs: readonly PlanOutput[];
  /** The files of the outputs; empty without --out. */
  readonly written: readonly string[];
}

export interface PlanOutput {
  readonly name: string;
  readonly named: string | null;
  readonly dtype: Tensor["dtype"];
  readonly shape: readonly number[];
  readonly fingerprint: string;
}

export interface PlanSetting {
  /** Null if the plan has one rank. */
  readonly world: World | null;
  readonly flight: FlightRecorder;
  readonly step: ProgressStep;
}

/** Rank 0 gets the result, and other ranks get null. Throws `plan-mismatch` and what the back end reports. */
export async function runPlan(
  folder: string,
  { document, hash, ranks }: Plan,
  flags: PlanRunFlags,
  { world, flight, step }: PlanSetting,
): Promise<PlanRunResult | null> {
  const rendezvous = world ?? soloRendezvous();
  const { rank } = rendezvous;
  const outputPlace = rank === 0 ? await requireOutputPlace(flags) : null;
  const { ops, notes, tensors } = at(ranks, rank);
  if (world !== null) await requireSameProgram(world, { hash, options: { FILE: folder } });
  const { graph, timeout, seed, repeat } = flags;
  const group = openDeviceGroup({ rendezvous, graph, timeout, flight });
  requireTarget(folder, document.target, group.gpu, rank);
  step("preparing");
  const prepared = await group.prepare(() => ({ ops, unjoined: () => ops, notes }));
  step("drawing inputs");
  const inputs = randomInputs(document.inputs, createRandom(seed), "uniform");
  for (const tensor of tensors.filter(({ role }) => role === "input")) {
    const whole = at(inputs, tensor.position);
    prepared.write(tensor.place, planShard(tensor, whole.shape, tensorBytes(whole)));
  }
  const reports = [];
  for (let i = 0; i < repeat; i++) {
    if (repeat === 1) step(`running on ${document.world} devices`);
    else step(`running on ${document.world} devices`, i, repeat);
    reports.push(await prepared.execute());
  }
  const times = world === null ? reports : await gatherReports(world, reports);
  const outputs: Tensor[] = [];
  for (const [position, { dtype, shape }] of document.outputs.entries()) {
    const own = tensors.find((tensor) => positionIn(tensor, "output") === position);
    const bytes = own === undefined ? new Uint8Array() : prepared.read(own.place, own.bytes);
    const parts = world === null ? [bytes] : await gatherBytes(world, bytes);
    const whole = emptyTensor(dtype, shape);
    // Where ranks have copies, that of the lowest one stays.
    for (const [other, part] of [...parts.entries()].toReversed()) {
      const tensor = at(ranks, other).tensors.find((each) => positionIn(each, "output") === position);
      if (tensor !== undefined) putPart(tensor, shape, part, tensorBytes(whole));
    }
    outputs.push(whole);
  }
  prepared.release();
  await group.close();
  if (rank !== 0) return null;
  const named = new Map(outputs.map((tensor, i) => [at(document.outputs, i).name, tensor]));
  return {
    plan: folder,
    devices: document.world,
    seed,
    milliseconds: times.map(({ milliseconds }) => milliseconds),
    outputs: outputs.map((tensor, i) => {
      const { name, named: own, dtype, shape } = at(document.outputs, i);
      return { name, named: own, dtype, shape, fingerprint: fingerprint(tensor) };
    }),
    written: outputPlace === null ? [] : await writeOutputFiles(outputPlace, named),
  };
}

function requireTarget(
  folder: string,
  target: Plan["document"]["target"],
  { name, capability, smCount }: { readonly name: string; readonly capability: number; readonly smCount: number },
  rank: number,
): void {
  if (capability >= target.capability && smCount >= target.multiprocessors) return;
  const text = (of: number, count: number): string =>
    `compute capability ${(of / 10).toFixed(1)}, ${count} multiprocessors`;
  fail("plan-mismatch", "a plan is for larger or newer GPUs", {
    place: { kind: "file", path: folder },
    found: `rank ${rank}: ${name}, ${text(capability, smCount)}`,
    expected: `at least ${text(target.capability, target.multiprocessors)}`,
    help: `make a plan for this machine: braid compile FILE -o FOLDER --gpu capability=${capability},multiprocessors=${smCount}`,
  });
}
