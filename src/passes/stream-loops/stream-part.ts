/**
 * The Stream axis of a tensor: a whole logical axis, of which an iteration takes one index, or a part that split made,
 * of which an iteration takes one chunk and keeps the axis. `within` lists the DID types of the parts outside of it, if
 * the axis is cut over devices first and each share into chunks then:
 *
 *   [M split outer S]                Stream S, M/S               chunks of the axis
 *   [M split outer S, outer D]       Stream S, DIDx D, ...       chunks of the axis, each spread over the devices
 *   [M split outer D, outer S]       DIDx D, Stream S, ...       chunks of each device's share
 */
import { axisParts, outermostTypes } from "../../ir/axis-shards.ts";
import { type DIDType, isDID, type IterDomain, type Tensor } from "../../ir/domain.ts";
import { sameScalar } from "../../ir/scalar/fold.ts";
import { printScalar } from "../../ir/scalar/print.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";

/** How a loop cuts the axis that it counts. */
export interface Chunks {
  readonly parts: Scalar;
  readonly within: readonly DIDType[];
}

export interface StreamPart {
  /** The axis of the loop domain that has Stream. */
  readonly part: IterDomain;
  /** The logical axis that it is, or is a part of. */
  readonly axis: IterDomain;
  /** Null if the part is the whole axis. */
  readonly chunks: Chunks | null;
}

/** The Stream axis of a tensor. Null if it has none, or one that no loop can count. */
export function streamPart(tensor: Tensor): StreamPart | null {
  const { domain } = tensor;
  const part = domain.loop.find((axis) => axis.parallelType === "Stream");
  if (part === undefined) return null;
  for (const axis of domain.logical) {
    if (axis.id === part.id) return { part, axis, chunks: null };
    const parts = axisParts(domain, axis);
    const position = parts.findIndex(({ id }) => id === part.id);
    if (position < 0) continue;
    const within = outermostTypes(domain, axis);
    return within.length === position ? { part, axis, chunks: { parts: part.extent, within } } : null;
  }
  return null;
}

export function sameChunks(a: Chunks | null, b: Chunks | null): boolean {
  if (a === null || b === null) return a === b;
  return a.within.join() === b.within.join() && sameScalar(a.parts, b.parts);
}

/** Equal for equal chunks. */
export function chunksText(chunks: Chunks | null): string {
  return chunks === null ? "" : `${printScalar(chunks.parts)} ${chunks.within.join()}`;
}

/** How the splits of an axis of an operand lie to the chunks of a loop. */
export type ChunkFit =
  /** A chunk is a run of what a device has. `part` is the part of the axis that numbers the chunks, if it has one. */
  | { readonly kind: "fits"; readonly part: IterDomain["id"] | null }
  /** The devices have shares of the axis, and the chunks are chunks of the whole axis. */
  | { readonly kind: "shares"; readonly type: DIDType }
  /** The chunks are chunks of shares, and no device has a share. */
  | { readonly kind: "whole" };

export function chunkFit({ domain }: Pick<Tensor, "domain">, axis: IterDomain, { parts, within }: Chunks): ChunkFit {
  const own = axisParts(domain, axis);
  const types = own.map(({ parallelType }) => parallelType);
  const skipped = within.length;
  if (within.some((type, i) => types[i] !== type)) return { kind: "whole" };
  const candidate = own[skipped];
  const isChunked = candidate !== undefined && own.length > skipped + 1 && !isDID(candidate.parallelType);
  if (isChunked && sameScalar(candidate.extent, parts)) return { kind: "fits", part: candidate.id };
  const cut = types.slice(skipped).find(isDID);
  return cut === undefined ? { kind: "fits", part: null } : { kind: "shares", type: cut };
}
