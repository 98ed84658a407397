/** What a member of a collective in the CUDA idiom copies and combines: pieces of the table of collectives, in own and peers' memory. */
import { at, invariant } from "../../support/invariant.ts";
import { type Assembly, assembliesOf } from "../collectives.ts";
import type { BufferRef } from "../command.ts";
import type { CombineKernel } from "../kernel.ts";
import { sliceOf } from "../slices.ts";
import type { View } from "../transfer.ts";
import { alignViews } from "../view.ts";
import type { LinkedCollective } from "./match-peer-collectives.ts";

export interface Combination {
  readonly kernel: CombineKernel;
  readonly inputs: readonly BufferRef[];
  readonly outputs: readonly BufferRef[];
}

/** The copy from the member at `from` into the result of the one at `position`. */
export function memberCopy(
  collective: LinkedCollective,
  position: number,
  from: number,
): { readonly source: View; readonly destination: View } {
  const [source, destination] =
    collective.slices === null ? pieceFrom(collective, position, from) : sliceFrom(collective, position, from);
  return { source, destination };
}

/** The whole result of the member at `position`, or its slice of it, combined of the inputs in team order. */
export function memberCombination(collective: LinkedCollective, position: number): Combination {
  const { members, slices } = collective;
  const assembly = at(assembliesOf(members, position), 0);
  const { reduceOp } = at(members, position);
  invariant(reduceOp !== null && assembly.sources.length > 1, "a reduction combines several inputs", assembly);
  const views = viewsOf(assembly);
  const [output, ...inputs] = slices === null ? aligned(views) : views.map((view) => sliceOf(view, slices, position));
  invariant(output !== undefined, "a combination has an output", { position });
  return {
    kernel: {
      kind: "combine",
      op: reduceOp,
      inputs: inputs.map(operandOf),
      outputs: [operandOf(output)],
    },
    inputs: inputs.map(refOf),
    outputs: [refOf(output)],
  };
}

function pieceFrom({ members }: LinkedCollective, position: number, from: number): readonly [View, View] {
  const pieces = assembliesOf(members, position).flatMap(({ output, sources }) =>
    sources.filter((source) => source.from === from).map(({ view }) => [view, output]),
  );
  const [source, destination] = aligned(at(pieces, 0, "a member copies from those whose data it needs"));
  invariant(source !== undefined && destination !== undefined, "alignment keeps the views", { position, from });
  return [source, destination];
}

function sliceFrom({ members, slices }: LinkedCollective, position: number, from: number): readonly [View, View] {
  const [theirs, own] = [at(members, from).output, at(members, position).output];
  invariant(theirs !== null && own !== null && slices !== null, "slices are of an Allreduce", { position, from });
  return [sliceOf(theirs, slices, from), sliceOf(own, slices, from)];
}

function viewsOf({ output, sources }: Assembly): readonly View[] {
  return [output, ...sources.map(({ view }) => view)];
}

function aligned(views: readonly View[]): readonly View[] {
  const found = alignViews(views);
  invariant(found !== null, "collectives whose pieces share no box are refused", views);
  return found;
}

function operandOf({ dtype, shape, strides }: View): CombineKernel["inputs"][number] {
  return { dtype, shape, strides };
}

function refOf({ buffer, offset }: View): BufferRef {
  return { buffer, offset };
}
