/**
 * The Stream axis of a tensor: a whole logical axis, of which an iteration takes one index, or a part that split made,
 * of which an iteration takes one chunk and keeps the axis. `within` lists the DID types of the parts outside of it, if
 * the axis is cut over devices first and each share into chunks then:
 *
 *   [M split outer S]                Stream S, M/S               chunks of the axis
 *   [M split outer S, outer D]       Stream S, DIDx D, ...       chunks of the axis, each spread over the devices
 *   [M split outer D, outer S]       DIDx D, Stream S, ...       chunks of each device's share
 */
import { type DIDType, isDID, type IterDomain, type Tensor } from "./domain.ts";
import { type CutAxis, cutOf, isCut, loopAxesOf, overlay, type Part, rescaled, wholeAxis, withTypes } from "./parts.ts";
import { foldCeilDiv, sameScalar } from "./scalar/fold.ts";
import { constant, printScalar, type Scalar } from "./scalar/scalar.ts";
import { outermostTypes } from "./shards.ts";

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
  readonly cut: CutAxis;
  /** Null if the part is the whole axis. */
  readonly chunks: Chunks | null;
}

export function streamAxis(tensor: Tensor): IterDomain | null {
  return tensor.domain.loop.find((axis) => axis.parallelType === "Stream") ?? null;
}

/** The Stream axis of a tensor. Null if it has none, or one that no loop can count. */
export function streamPart(tensor: Tensor): StreamPart | null {
  const { domain } = tensor;
  const part = streamAxis(tensor);
  if (part === null) return null;
  for (const axis of domain.logical) {
    if (!loopAxesOf(domain, axis).some(({ id }) => id === part.id)) continue;
    const cut = cutOf(domain, axis);
    if (axis.id === part.id) return { part, axis, cut, chunks: null };
    const within = outermostTypes(cut);
    const isCounted = cut.parts[within.length]?.type === "Stream";
    return isCounted ? { part, axis, cut, chunks: { parts: part.extent, within } } : null;
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

/** How an axis of an operand lies to the chunks of a loop. */
export type ChunkFit =
  /** A chunk is a run of what a device has. `cut` has Stream on the part that numbers the chunks. */
  | { readonly kind: "fits"; readonly cut: CutAxis }
  /** The devices have shares of the axis, and the chunks are chunks of the whole axis. */
  | { readonly kind: "shares"; readonly type: DIDType }
  /** The chunks are chunks of shares, and no device has a share. */
  | { readonly kind: "whole" };

export function chunkFit(axis: CutAxis, { parts, within }: Chunks): ChunkFit {
  const own = withTypes(axis, isDID);
  if (within.some((type, i) => own.parts[i]?.type !== type)) return { kind: "whole" };
  const shares = own.parts.slice(0, within.length);
  const stride = foldCeilDiv(shares.at(-1)?.stride ?? own.extent, parts);
  const chunks = {
    extent: own.extent,
    parts: [
      ...shares.map((part): Part => ({ ...part, type: "Serial" })),
      { extent: parts, stride, type: "Stream" },
      { extent: stride, stride: constant(1), type: "Serial" },
    ],
  } satisfies CutAxis;
  const cut = overlay(own, chunks);
  if (cut?.parts[within.length]?.type === "Stream") return { kind: "fits", cut };
  const type = own.parts
    .slice(within.length)
    .map((part) => part.type)
    .find(isDID);
  return type === undefined ? { kind: "whole" } : { kind: "shares", type };
}

/**
 * The axis with Stream as `stream` has it on another axis; null if a loop over it does not take a run of what each
 * device has.
 */
export function withStream(axis: CutAxis, { chunks, cut }: StreamPart): CutAxis | null {
  if (chunks === null) return isCut(axis) ? null : wholeAxis(axis.extent, "Stream");
  const stream = withTypes(cut, (type) => type === "Stream");
  const made = overlay(withTypes(axis, isDID), rescaled(stream, axis.extent));
  if (made === null || outermostTypes(made).join() !== chunks.within.join()) return null;
  return made.parts[chunks.within.length]?.type === "Stream" ? made : null;
}
