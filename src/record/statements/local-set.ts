/**
 * A Set between shardings of one mesh in which every device has all of what it gets. The output is bound to the
 * device's part of the input if that is one box of elements, else the parts are copied.
 *
 *   rank 1 of 2: T1[DIDx 2 of i{8}, _] = Set(T0[i{8}, _], local)     T1 is rows 4 to 7 of T0
 */
import { countIn, intersection } from "../../ir/runs.ts";
import { type Tensor, withoutReductions } from "../../ir/domain.ts";
import type { SetOp } from "../../ir/ops/op.ts";
import { narrowView, sameNumbers, type View } from "../../commands/view.ts";
import { agreed } from "../../host/alike/classes.ts";
import { at } from "../../support/invariant.ts";
import { withSizes } from "../actual.ts";
import type { Actual, AxisPair } from "../actual-sizes.ts";
import { shapeText } from "../checks.ts";
import { emitCopy } from "../launch.ts";
import { fail, ranksOf, type Recorder } from "../recorder.ts";
import { outputView, tensorOf, viewOf } from "../tensors.ts";
import { sameElements } from "../views.ts";
import type { Side } from "./collective-sides.ts";
import { boxes, heldBy, pairOf, viewOfBox } from "./exchange-plan.ts";

/** `bind` binds the output to a view, or copies the view to the output's memory. */
export function recordLocalSet(recorder: Recorder, op: SetOp, bind: (view: View, actual: Actual | null) => void): void {
  const source = at(op.inputs, 0);
  const [input, output] = [tensorOf(recorder, source), tensorOf(recorder, op.output)];
  const pairs = pairsOf(recorder, input, output);
  const view = viewOf(recorder, source);
  const onRanks = ranksOf(recorder).map((rank) => {
    const held = { input: heldBy({ pairs }, "input", rank), output: heldBy({ pairs }, "output", rank) };
    const common = held.output.map((runs, axis) => intersection(runs, at(held.input, axis)));
    return { held, parts: boxes(common), common };
  });
  const lengths = agreed(
    onRanks.map(({ common }) => common.map(countIn)),
    sameNumbers,
  );
  const wanted = agreed(
    onRanks.map(({ held }) => held.output.map(countIn)),
    sameNumbers,
  );
  if (!sameNumbers(lengths, wanted)) reject(recorder, lengths, wanted);
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
  const count = agreed(onRanks.map(({ parts }) => parts.length));
  if (count === 0)
    return bind(
      lengths.reduce((part, length, axis) => narrowView(part, axis, 0, length), view),
      actual,
    );
  const partOf = (whole: View, side: Side, part: number): View =>
    viewOfBox(
      whole,
      onRanks.map(({ held }) => held[side]),
      onRanks.map(({ parts }) => at(parts, part)),
    );
  if (count === 1) return bind(partOf(view, "input", 0), actual);
  const target = outputView(recorder, op.output, actual);
  for (let part = 0; part < count; part++) {
    const [from, to] = [partOf(view, "input", part), partOf(target, "output", part)];
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
