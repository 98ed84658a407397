/** The sizes of a communication's output, where the input is a chunk or a share that is shorter than declared. */
import { sameNumbers } from "../../commands/view.ts";
import { countIn, intersection, runsBetween } from "../../ir/runs.ts";
import { isWhole, shardsOf } from "../../ir/shards.ts";
import { withoutReductions } from "../../ir/domain.ts";
import { agreed } from "../../host/alike/classes.ts";
import type { Communication } from "../../host/nodes.ts";
import { at } from "../../support/invariant.ts";
import { type AxisSize, withSizes } from "../actual.ts";
import { declaredRuns, runsOn } from "../chunks.ts";
import { findView, outputView, tensorOf } from "../tensors.ts";
import { ranksOf, type Recorder } from "../recorder.ts";
import { alignAxes } from "./collective-axes.ts";
import type { PostedCollective } from "./collective-sides.ts";

/** Gives the output of a collective the extents of its input. */
export function resizeOutput(recorder: Recorder, { statement, type, root, teams }: PostedCollective): void {
  const { input, output } = statement;
  if (type === "Broadcast" && root !== null) {
    const senders = teams.map((team) => at(team, root));
    return resizeLike(recorder, statement, senders);
  }
  const actual = recorder.actuals.get(input);
  if (actual?.differs !== true || findView(recorder, output) === null) return;
  const made = tensorOf(recorder, output);
  const axes = withoutReductions(made.domain.logical);
  const counterparts = alignAxes(tensorOf(recorder, input), made, type);
  if (counterparts.length !== actual.extents.length) return;
  const ranks = ranksOf(recorder);
  const sizes = counterparts.flatMap((counterpart, position): readonly AxisSize[] => {
    const axis = axes.findIndex(({ id }) => id === counterpart?.id);
    const extent = at(actual.extents, position);
    if (axis < 0) return [];
    const exists = actual.exists.get(position);
    const localOn = (rank: number): number =>
      countIn(intersection(declaredRuns(recorder, made, axis, rank), exists?.(rank) ?? runsBetween(0, extent)));
    return [{ axis, extent, local: agreed(ranks.map(localOn)), exists }];
  });
  outputView(recorder, output, withSizes(recorder, made, sizes));
}

/** Gives the output the sizes that the input has on the sender of all of it. `senders`: that of each rank, or of all. */
export function resizeLike(
  recorder: Recorder,
  { input, output }: Pick<Communication, "input" | "output">,
  senders: readonly number[],
): void {
  const own = findView(recorder, output);
  if (own === null) return;
  const source = tensorOf(recorder, input);
  const actual = recorder.actuals.get(input);
  if (actual === undefined && shardsOf(source).every(isWhole)) return;
  const lengths = withoutReductions(source.domain.logical).map((_, axis) =>
    agreed(senders.map((sender) => countIn(runsOn(recorder, source, axis, sender)))),
  );
  if (sameNumbers(lengths, own.shape) || lengths.length !== own.shape.length) return;
  const sizes = lengths.map((local, axis): AxisSize => ({ axis, extent: local, local, exists: undefined }));
  outputView(recorder, output, withSizes(recorder, tensorOf(recorder, output), sizes));
}
