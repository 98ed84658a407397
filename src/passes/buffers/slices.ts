/** Slices of buffers in loops: an index of an axis (HirAliasSelect) or a chunk of it (ShardByStream). */
import { cutOf, isEven } from "../../ir/parts.ts";
import { type IterDomain, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { constantValue, sameScalar } from "../../ir/scalar/fold.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import type { HostProgram, Statement } from "../../host/nodes.ts";
import { isTeamCommunication, type Slicing, walk } from "../../host/traverse.ts";
import { at } from "../../support/invariant.ts";

/** The logical position of the sliced axis, and how many chunks the slices are. A chunk of one index is an index. */
export function slicedAxisOf(
  { tensors }: HostProgram,
  statement: Slicing,
): { readonly axis: number; readonly chunks: Scalar | null } {
  if (statement.kind === "HirAliasSelect") return { axis: statement.axis, chunks: null };
  const { logical } = at(tensors, statement.input).domain;
  const own = at(withoutReductions(logical), statement.axis);
  return {
    axis: logical.findIndex(({ id }) => id === own.id),
    chunks: sameScalar(own.extent, statement.parts) ? null : statement.parts,
  };
}

/**
 * Whether a statement writes as much of a slice of `of` as the slice is long. A slot has room for the longest chunk, and
 * what ops and collectives make from shorter chunks is as short. What arrives from a peer is not. And a gather of shares
 * that are no chunks must know which chunk it gathers.
 */
export function knowsLengths(
  { tensors, body }: HostProgram,
  statement: Statement,
  of: TensorId,
  slices: ReadonlySet<TensorId>,
): boolean {
  const isOfTeam = isTeamCommunication(statement);
  if (statement.kind !== "P2PCommunication" && !isOfTeam) return true;
  const gathers = statement.kind === "Communication" && statement.type !== "Broadcast";
  if (isOfTeam && slices.has(statement.input)) return true;
  const tensor = at(tensors, of);
  return walk(body).every((each) => {
    if (each.kind !== "ShardByStream" || each.input !== of) return true;
    const axis = at(withoutReductions(tensor.domain.logical), each.axis);
    return !gathers && (sameScalar(axis.extent, each.parts) || hasEvenChunks(tensor, axis, each.parts));
  });
}

/** Whether all chunks are known to be equal on all devices. */
function hasEvenChunks({ domain }: Tensor, axis: IterDomain, parts: Scalar): boolean {
  const [size, count] = [constantValue(axis.extent), constantValue(parts)];
  if (size === null || count === null || size % count !== 0) return false;
  return isEven(cutOf(domain, axis));
}
