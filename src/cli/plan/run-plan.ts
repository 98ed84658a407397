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
import type { Plan } from "../../plan/read-plan.ts";
import { at } from "../../support/invariant.ts";
import { createRandom } from "../../support/random.ts";
import { gatherBytes, gatherReports } from "../run/gather.ts";
import { fingerprint } from "../run/outputs.ts";
import { requireOutputPlace, writeOutputFiles } from "../tensor-files/output-files.ts";
import type { ProgressStep } from "../terminal/progress.ts";
import { contiguousStrides } from "../../commands/view.ts";
import { dtypes } from "../../numerics/dtype.ts";
import type { PlanTensor } from "../../plan/rank-document.ts";

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

/* Cuts a rank's part out of a whole row-major tensor, and puts it back, as the plan's tensors say. */

/** The bytes of the rank's buffer. */
export function planShard(tensor: PlanTensor, wholeShape: readonly number[], whole: Uint8Array): Uint8Array {
  const part = new Uint8Array(tensor.bytes);
  eachElement(tensor, wholeShape, (inPart, inWhole, bytes) => {
    part.set(whole.subarray(inWhole, inWhole + bytes), inPart);
  });
  return part;
}

/** Writes the bytes of the rank's buffer into their place in the whole. */
export function putPart(tensor: PlanTensor, wholeShape: readonly number[], part: Uint8Array, whole: Uint8Array): void {
  eachElement(tensor, wholeShape, (inPart, inWhole, bytes) => {
    whole.set(part.subarray(inPart, inPart + bytes), inWhole);
  });
}

/** Visits runs of elements that lie side by side on both sides; places and `bytes` in bytes. */
function eachElement(
  { held, strides, dtype }: PlanTensor,
  wholeShape: readonly number[],
  visit: (inPart: number, inWhole: number, bytes: number) => void,
): void {
  const { bytes } = dtypes[dtype];
  const wholeStrides = contiguousStrides(wholeShape);
  const last = held.length - 1;
  const walk = (axis: number, inPart: number, inWhole: number): void => {
    if (axis > last) return visit(inPart * bytes, inWhole * bytes, bytes);
    let local = 0;
    for (const [start, stop] of at(held, axis)) {
      const [step, wholeStep] = [at(strides, axis), at(wholeStrides, axis)];
      if (axis === last && step === 1) {
        visit((inPart + local) * bytes, (inWhole + start) * bytes, (stop - start) * bytes);
        local += stop - start;
        continue;
      }
      for (let i = start; i < stop; i++, local++) walk(axis + 1, inPart + local * step, inWhole + i * wholeStep);
    }
  };
  walk(0, 0, 0);
}
