/**
 * A Set between shardings of one mesh in which every device has all of what it gets. The output is bound to the
 * device's part of the input if that is one box of elements, else the parts are copied.
 *
 *   rank 1 of 2: T1[DIDx 2 of i{8}, _] = Set(T0[i{8}, _], local)     T1 is rows 4 to 7 of T0
 */
import { countIn, intersection } from "../../ir/runs.ts";
import { type Tensor, withoutReductions } from "../../ir/domain.ts";
import type { SetOp } from "../../ir/ops/op.ts";
import { narrowView, type View } from "../../commands/view.ts";
import { at } from "../../support/invariant.ts";
import { withSizes } from "../actual.ts";
import type { Actual, AxisPair } from "../actual-sizes.ts";
import { shapeText } from "../checks.ts";
import { emitCopy } from "../launch.ts";
import { fail, type Recorder } from "../recorder.ts";
import { outputView, tensorOf, viewOf } from "../tensors.ts";
import { sameElements } from "../views.ts";
import { boxes, heldBy, pairOf, viewOfBox } from "./exchange-plan.ts";

/** `bind` binds the output to a view, or copies the view to the output's memory. */
export function recordLocalSet(recorder: Recorder, op: SetOp, bind: (view: View, actual: Actual | null) => void): void {
  const source = at(op.inputs, 0);
  const [input, output] = [tensorOf(recorder, source), tensorOf(recorder, op.output)];
  const { rank } = recorder.options;
  const pairs = pairsOf(recorder, input, output);
  const view = viewOf(recorder, source);
  const common = pairs.map(({ on }) => intersection(on.output(rank), on.input(rank)));
  const lengths = common.map((runs) => countIn(runs));
  const wanted = pairs.map(({ on }) => countIn(on.output(rank)));
  if (lengths.some((length, axis) => length !== wanted[axis])) reject(recorder, lengths, wanted);
  const known = recorder.actuals.get(source);
  const actual =
    known?.differs === true
      ? withSizes(
          recorder,
          output,
          lengths.map((local, axis) => ({
            axis,
            extent: at(known.extents, axis),
            local,
            exists: known.exists.get(axis),
          })),
        )
      : null;
  const parts = boxes(common);
  const [first] = parts;
  if (first === undefined)
    return bind(
      lengths.reduce((part, length, axis) => narrowView(part, axis, 0, length), view),
      actual,
    );
  const held = { input: heldBy({ pairs }, "input", rank), output: heldBy({ pairs }, "output", rank) };
  if (parts.length === 1) return bind(viewOfBox(view, held.input, first), actual);
  const target = outputView(recorder, op.output, actual);
  for (const box of parts) {
    const [from, to] = [viewOfBox(view, held.input, box), viewOfBox(target, held.output, box)];
    if (!sameElements(from, to)) emitCopy(recorder, from, to);
  }
}

function pairsOf(recorder: Recorder, input: Tensor, output: Tensor): readonly AxisPair[] {
  return withoutReductions(input.domain.logical).map((_, axis) => {
    const pair = pairOf(recorder, input, axis, output, axis);
    return pair === null ? reject(recorder, [], []) : pair.axes;
  });
}

function reject(recorder: Recorder, found: readonly number[], expected: readonly number[]): never {
  return fail(recorder, {
    code: "size-mismatch",
    message: "a local Set needs elements that the device does not have",
    found: shapeText(found),
    expected: shapeText(expected),
    help: "remove local=true: then the Set is a communication",
  });
}
