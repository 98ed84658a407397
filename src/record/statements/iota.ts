/**
 * Iota as one launch for each run of indices that this rank holds of the axis: a launch's origin is the first index of
 * its run. All launches of equal length share a kernel.
 *
 *   iota(8) on [i{8} split outer 2 Serial, DIDx 2, S 2], device 1     2 3 | 6 7     origins 2 and 6
 */
import type { IotaKernel } from "../../commands/kernel.ts";
import { narrowView } from "../../commands/view.ts";
import { agreed } from "../../host/alike/classes.ts";
import type { Runs } from "../../ir/runs.ts";
import type { IotaOp } from "../../ir/ops/op.ts";
import { declaredRuns } from "../chunks.ts";
import { launch } from "../launch.ts";
import { at } from "../../support/invariant.ts";
import { evaluate, ranksOf, type Recorder } from "../recorder.ts";
import { outputView, tensorOf } from "../tensors.ts";

export function recordIota(recorder: Recorder, statement: IotaOp): void {
  const view = outputView(recorder, statement.output);
  const [start, step] = [evaluate(recorder, statement.start), evaluate(recorder, statement.step)];
  let position = 0;
  const runs = ranksOf(recorder).map((rank) => heldRuns(recorder, statement, rank));
  for (const [i, run] of agreed(runs, sameLengths).entries()) {
    const length = run.stop - run.start;
    launch(recorder, {
      statement,
      inputs: [],
      outputs: [narrowView(view, 0, position, length)],
      originsOn: runs.map((own) => [at(own, i).start]),
      inPlace: false,
      fixed: false,
      make: (inputs, outputs): IotaKernel => ({ kind: "iota", start, step, inputs, outputs }),
    });
    position += length;
  }
}

function sameLengths(a: Runs, b: Runs): boolean {
  return a.length === b.length && a.every(({ start, stop }, i) => stop - start === at(b, i).stop - at(b, i).start);
}

/** The indices of the whole axis that lie in the output's memory on a rank, in its order. */
function heldRuns(recorder: Recorder, { output }: IotaOp, rank: number): Runs {
  const chunk = recorder.actuals.get(output)?.chunk ?? null;
  return chunk?.runs(rank) ?? declaredRuns(recorder, tensorOf(recorder, output), 0, rank);
}
