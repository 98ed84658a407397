/**
 * The copies and combinations of a rank in a collective in peer memory. The table of collectives determines their
 * slices, in the rank's own and its peers' memory.
 */
import { at, invariant } from "../../support/invariant.ts";
import type { BufferRef } from "../buffer.ts";
import { assembliesOf, sliceFrom } from "../collectives.ts";
import type { CombineKernel } from "../kernel.ts";
import { sliceOf } from "../slices.ts";
import { alignViews, operandOf, refOf, type View } from "../view.ts";
import type { LinkedCollective } from "./match/peer-collectives.ts";

export interface Combination {
  readonly kernel: CombineKernel;
  readonly inputs: readonly BufferRef[];
  readonly outputs: readonly BufferRef[];
}

/** The copy of the slice that the rank at `from` holds of the result of the rank at `position`. */
export function sliceCopy(
  { operations }: LinkedCollective,
  position: number,
  from: number,
): { readonly source: View; readonly destination: View } {
  const slice = sliceFrom(operations, position, from);
  invariant(slice !== null, "a rank copies from those whose data it needs", { position, from });
  const [source, destination] = aligned([slice.source, slice.output]);
  invariant(source !== undefined && destination !== undefined, "alignment keeps the views", { position, from });
  return { source, destination };
}

/** The combination of the rank at `position`: its whole result, or its slice of all inputs into all outputs. */
export function combinationOf({ operations, sharing }: LinkedCollective, position: number): Combination {
  const { reduceOp } = at(operations, position);
  invariant(reduceOp !== null, "only a reduction combines", { position });
  if (sharing === null) {
    const { output, sources } = at(assembliesOf(operations, position), 0);
    const [destination, ...inputs] = aligned([output, ...sources.map(({ view }) => view)]);
    invariant(destination !== undefined && inputs.length > 1, "a reduction combines several inputs", { position });
    return combination(reduceOp, inputs, [destination]);
  }
  const { slices, inputs, outputs } = sharing;
  const sliced = (views: readonly View[]): readonly View[] => views.map((view) => sliceOf(view, slices, position));
  // The rank's own output first, then around the team, so that each rank starts writing at a different one.
  const around = [...outputs.slice(position), ...outputs.slice(0, position)];
  return combination(reduceOp, sliced(inputs), sliced(around));
}

function combination(op: CombineKernel["op"], inputs: readonly View[], outputs: readonly View[]): Combination {
  return {
    kernel: { kind: "combine", op, inputs: inputs.map(operandOf), outputs: outputs.map(operandOf) },
    inputs: inputs.map(refOf),
    outputs: outputs.map(refOf),
  };
}

function aligned(views: readonly View[]): readonly View[] {
  const found = alignViews(views);
  invariant(found !== null, "collectives whose slices share no box are refused", views);
  return found;
}
