/**
 * Divides the work of an Allreduce in peer memory: all tensors as views under one box, and a slice of it for each rank.
 * `record` sees only one rank's views, and decides from them which ranks have a slice and therefore signal. Here these
 * decisions are compared.
 */
import type { Diagnostic } from "../../../diagnostics/diagnostic.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { counted } from "../../../support/wording.ts";
import type { CommandList, PeerCollective } from "../../command-list.ts";
import { cutIntoSlices, positionsWithSlice, type Slices, viewsToCut } from "../../slices.ts";
import { sameNumbers, type View } from "../../view.ts";
import type { CollectiveUse } from "./check-collective.ts";
import { mismatch } from "./problems.ts";

export interface Sharing {
  readonly slices: Slices;
  /** In team order, under one box. */
  readonly inputs: readonly View[];
  readonly outputs: readonly View[];
}

export type SharingUse = CollectiveUse & Pick<PeerCollective, "combining">;

/**
 * `participants` is the whole team in team order. Null if the tensors have no common box, or a rank makes its whole
 * result.
 */
export function sharingOf(participants: readonly SharingUse[]): Sharing | null {
  if (participants.some(({ combining }) => combining === null)) return null;
  const inputs = participants.flatMap(({ operation: { input } }) => input ?? []);
  const outputs = participants.flatMap(({ operation: { output } }) => output ?? []);
  const views = viewsToCut([...inputs, ...outputs]);
  if (views === null) return null;
  const { shape, dtype } = at(views, 0);
  return {
    slices: cutIntoSlices(shape, dtypes[dtype].bytes, participants.length),
    inputs: views.slice(0, inputs.length),
    outputs: views.slice(inputs.length),
  };
}

/**
 * Ranks that divide the work differently would wait for signals that no rank sends. Null if all of them follow
 * `sharing`.
 */
export function sharingMismatch(
  lists: readonly CommandList[],
  participants: readonly SharingUse[],
  sharing: Sharing | null,
): Diagnostic | null {
  const expected = sharing === null ? null : positionsWithSlice(sharing.slices);
  const use = participants.find(({ combining }) => !samePositions(combining, expected));
  if (use === undefined) return null;
  const first = at(participants, 0);
  const text = ({ rank, combining }: SharingUse): string =>
    `${combining === null ? "whole results" : counted(combining.length, "slice")} on rank ${rank}`;
  return mismatch(lists, {
    message: "the ranks of a collective divide its work differently",
    at: use,
    against: use === first ? null : first,
    found: use === first ? text(use) : `${text(use)}, ${text(first)}`,
    expected:
      expected === null
        ? "tensors that one common shape can index"
        : `${counted(expected.length, "slice")}, from the strides of all ranks' tensors`,
    help: "give the input and the output the same strides on every rank",
  });
}

function samePositions(a: readonly number[] | null, b: readonly number[] | null): boolean {
  return a === null || b === null ? a === b : sameNumbers(a, b);
}
