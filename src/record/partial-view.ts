/**
 * The output of an op that stops at what each device has of a sharded axis: the axis that counts the devices has one element on each,
 * which kernels need not see.
 */
import type { View } from "../commands/view.ts";
import { partialAxes } from "../ir/ops/axis-map.ts";
import { withoutReductions } from "../ir/domain.ts";
import type { Op } from "../ir/ops/op.ts";
import { outputView, type Recorder, tensorOf } from "./recorder.ts";
import { permuteView } from "./views.ts";

/** What `op` writes to, without the axes of partial results. */
export function ordinaryOutput(recorder: Recorder, op: Op): View {
  const output = outputView(recorder, op.output);
  const partial = partialAxes(op, recorder.program.tensors);
  if (partial.length === 0) return output;
  const axes = withoutReductions(tensorOf(recorder, op.output).domain.logical);
  return permuteView(
    output,
    axes.flatMap((axis, position) => (partial.includes(axis) ? [] : [position])),
  );
}
