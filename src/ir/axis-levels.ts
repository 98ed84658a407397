/**
 * The sharding of one logical axis as levels, outermost first: each level splits off parts, and the last one leaves the
 * rest.
 *
 *   i0 split outer 4 (Stream), its inner axis split outer 2 (DIDx)     levels 4 Stream, 2 DIDx; rest Serial
 *
 * An axis whose outer parts are split again, or that was merged, has no levels: it is read as one that nothing follows.
 */
import { constantValue } from "./scalar/fold.ts";
import type { IterDomain, IterDomainId, ParallelType, TensorDomain, Transform } from "./domain.ts";

export interface Level {
  readonly factor: number;
  /** If true, `factor` is the extent of the rest; otherwise it is the number of parts. */
  readonly innerSplit: boolean;
  readonly type: ParallelType;
}

export interface AxisLevels {
  readonly levels: readonly Level[];
  /** The type of the rest: of the whole axis if there are no levels. */
  readonly rest: ParallelType;
}

export type Split = Extract<Transform, { readonly kind: "split" }>;

/** The split of an axis or of a part of one; null for none. */
export function splitOf({ transforms }: TensorDomain, id: IterDomainId): Split | null {
  const found = transforms.find((each): each is Split => each.kind === "split" && each.input === id);
  return found ?? null;
}

function typeOf({ loop }: TensorDomain, id: IterDomainId): ParallelType | null {
  return loop.find((axis) => axis.id === id)?.parallelType ?? null;
}

/** The levels of a logical axis; null for an axis without levels. */
export function levelsOf(domain: TensorDomain, axis: IterDomain): AxisLevels | null {
  const levels: Level[] = [];
  let { id } = axis;
  for (let split = splitOf(domain, id); split !== null; split = splitOf(domain, id)) {
    const type = typeOf(domain, split.outer);
    if (type === null) return null;
    levels.push({ factor: split.factor, innerSplit: split.innerSplit, type });
    id = split.inner;
  }
  const rest = typeOf(domain, id);
  return rest === null ? null : { levels, rest };
}

/**
 * The levels of the outermost axis of a reshape: a type on the whole axis gives each index to a device or a chunk, as a
 * split into as many parts does.
 */
export function outermostLevels(domain: TensorDomain, axis: IterDomain): AxisLevels | null {
  const own = levelsOf(domain, axis);
  const extent = constantValue(axis.extent);
  if (own === null || own.rest === "Serial" || own.levels.length > 0 || extent === null) return own;
  return { levels: [{ factor: extent, innerSplit: false, type: own.rest }], rest: "Serial" };
}

/**
 * Whether outer splits alone make the levels, and their parts divide the extent evenly at each level. A symbolic extent
 * is divided only by 1.
 */
export function dividesEvenly({ levels, rest }: AxisLevels, { extent }: Pick<IterDomain, "extent">): boolean {
  let size = constantValue(extent);
  for (const { factor, innerSplit } of levels) {
    if (innerSplit || (factor !== 1 && (size === null || size % factor !== 0))) return false;
    size = size === null ? null : size / factor;
  }
  return rest === "Serial";
}
