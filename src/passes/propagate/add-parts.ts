/** Puts the types of one axis on another. */
import type { IterDomain, ParallelType, TensorDomain } from "../../ir/domain.ts";
import { type CutAxis, cutOf, loopAxesOf, overlay, withTypes } from "../../ir/parts.ts";
import { recut } from "../edit/split-axes.ts";
import { type TensorEdit } from "../edit/tensor-edit.ts";

/** A domain under change, and the types that an axis of it has got. */
export interface TypedDomain {
  readonly domain: TensorDomain;
  readonly added: readonly ParallelType[];
}

/** Puts the types of `wanted` on an axis, outermost first, up to the first that crosses what the axis has. */
export function addParts(edit: TensorEdit, domain: TensorDomain, axis: IterDomain, wanted: CutAxis): TypedDomain {
  const types = wanted.parts.flatMap(({ type }) => (type === "Serial" ? [] : [type]));
  const isMerged = !loopAxesOf(domain, axis).some(({ id }) => domain.loop.some((own) => own.id === id));
  for (let count = isMerged ? 0 : types.length; count > 0; count--) {
    const added: readonly ParallelType[] = types.slice(0, count);
    const cut = overlay(
      cutOf(domain, axis),
      withTypes(wanted, (type) => added.includes(type)),
    );
    const made = cut === null || !isCounted(cut) ? null : recut(edit, domain, axis, cut);
    if (made !== null) return { domain: made, added };
  }
  return { domain, added: [] };
}

/** No loop runs over chunks of parts that nothing spreads. */
function isCounted({ parts }: CutAxis): boolean {
  const stream = parts.findIndex(({ type }) => type === "Stream");
  return parts.slice(0, Math.max(stream, 0)).every(({ type }) => type !== "Serial");
}
