/** Puts the levels of one axis on another. */
import type { IterDomain, IterDomainId, ParallelType, TensorDomain } from "../../ir/domain.ts";
import { type AxisLevels, type Level, levelsOf, type Split, splitOf } from "../../ir/axis-levels.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { foldCeilDiv } from "../../ir/scalar/fold.ts";
import { at } from "../../support/invariant.ts";
import { addAxis, type TensorEdit } from "../edit/tensor-edit.ts";

/** The levels with only the types that `keeps` accepts, without trailing levels of no type. Null if none is left. */
export function selectTypes({ levels, rest }: AxisLevels, keeps: (type: ParallelType) => boolean): AxisLevels | null {
  const kept = (type: ParallelType): ParallelType => (type !== "Serial" && keeps(type) ? type : "Serial");
  const chosen = levels.map((level): Level => ({ ...level, type: kept(level.type) }));
  const ownRest = kept(rest);
  if (ownRest !== "Serial") return { levels: chosen, rest: ownRest };
  const last = chosen.findLastIndex(({ type }) => type !== "Serial");
  return last < 0 ? null : { levels: chosen.slice(0, last + 1), rest: "Serial" };
}

/** A domain under change, and the types that an axis of it has got. */
export interface Sharded {
  readonly domain: TensorDomain;
  readonly added: readonly ParallelType[];
}

/**
 * Puts `wanted` on an axis. A level that the axis has already is shared if both split alike and only one of the two has
 * a type. Stops at the first level that differs.
 */
export function addLevels(edit: TensorEdit, domain: TensorDomain, axis: IterDomain, wanted: AxisLevels): Sharded {
  const own = levelsOf(domain, axis);
  if (own === null) return { domain, added: [] };
  const fitting = fittingLevels(own, wanted);
  const added: ParallelType[] = [];
  let result = domain;
  let { id } = axis;
  const setType = (part: IterDomainId, type: ParallelType): void => {
    if (type === "Serial") return;
    added.push(type);
    result = withType(result, part, type);
  };
  for (const level of fitting.levels) {
    const known = splitOf(result, id);
    const made = known === null ? withSplit(edit, result, id, level) : { domain: result, split: known };
    result = made.domain;
    setType(made.split.outer, level.type);
    id = made.split.inner;
  }
  setType(id, fitting.rest);
  return { domain: result, added };
}

/** The levels of `wanted` that an axis with levels `own` can get, with only the types that are new to it. */
function fittingLevels(own: AxisLevels, wanted: AxisLevels): AxisLevels {
  const levels: Level[] = [];
  for (const [i, level] of wanted.levels.entries()) {
    const known = own.levels[i];
    // No loop runs over chunks of parts that nothing spreads.
    if (level.type === "Stream" && !isSpread(levels, own)) return withoutEmptyLevels(levels, own);
    if (known === undefined) {
      if (own.rest !== "Serial") return withoutEmptyLevels(levels, own);
      levels.push(level);
      continue;
    }
    const isAlike = known.factor === level.factor && known.innerSplit === level.innerSplit;
    if (!isAlike || (known.type !== "Serial" && level.type !== "Serial")) return withoutEmptyLevels(levels, own);
    levels.push(level);
  }
  const isRestFree =
    own.rest === "Serial" && own.levels.length <= levels.length && (wanted.rest !== "Stream" || isSpread(levels, own));
  return isRestFree && wanted.rest !== "Serial" ? { levels, rest: wanted.rest } : withoutEmptyLevels(levels, own);
}

/** Whether each of the levels has a type, on an axis that has `own` levels already. */
function isSpread(levels: readonly Level[], own: AxisLevels): boolean {
  return levels.every(({ type }, i) => type !== "Serial" || (own.levels[i]?.type ?? "Serial") !== "Serial");
}

/** Without trailing levels that have no type and that the axis does not have. */
function withoutEmptyLevels(levels: readonly Level[], own: AxisLevels): AxisLevels {
  const last = levels.findLastIndex(({ type }, i) => type !== "Serial" || i < own.levels.length);
  return { levels: levels.slice(0, last + 1), rest: "Serial" };
}

function withSplit(
  edit: TensorEdit,
  domain: TensorDomain,
  input: IterDomainId,
  { factor, innerSplit }: Level,
): { readonly domain: TensorDomain; readonly split: Split } {
  const whole = at(
    domain.loop,
    domain.loop.findIndex(({ id }) => id === input),
  );
  const parts = constant(factor);
  const rest = foldCeilDiv(whole.extent, parts);
  const outer = addAxis(edit, { extent: innerSplit ? rest : parts, iterType: whole.iterType });
  const inner = addAxis(edit, { extent: innerSplit ? parts : rest, iterType: whole.iterType });
  const split: Split = { kind: "split", input, outer: outer.id, inner: inner.id, factor, innerSplit };
  const replace = (axes: readonly IterDomain[]): readonly IterDomain[] =>
    axes.flatMap((axis) => (axis.id === input ? [outer, inner] : [axis]));
  // An order of memory that lists logical axes stays as it is.
  const lists = domain.allocation?.some(({ id }) => id === input) === true;
  const isLogical = domain.logical.some(({ id }) => id === input);
  const allocation = lists && !isLogical && domain.allocation !== null ? replace(domain.allocation) : domain.allocation;
  return {
    domain: { ...domain, transforms: [...domain.transforms, split], loop: replace(domain.loop), allocation },
    split,
  };
}

/** The type stands on the axis wherever a domain lists it. */
function withType({ logical, transforms, loop, allocation }: TensorDomain, id: IterDomainId, type: ParallelType) {
  const typed = (axis: IterDomain): IterDomain => (axis.id === id ? { ...axis, parallelType: type } : axis);
  return {
    logical: logical.map(typed),
    transforms,
    loop: loop.map(typed),
    allocation: allocation?.map(typed) ?? null,
  } satisfies TensorDomain;
}
