/**
 * A Fusion without some of its equal layers, the same ones in the forward and in the backward pass. Tensors keep their
 * numbers. What a layer reads of one that is left out, it reads of the one before.
 *
 *     A BCD BCD BCD BCD F | HI HI HI HI HI     ->     A BCD BCD F | HI HI HI
 */
import type { TensorId } from "../../ir/domain.ts";
import type { Alias, CotangentUse, Derivation, FusionData } from "../../ir/fusion-data.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import { at, pushTo } from "../../support/invariant.ts";
import type { Home, Layers } from "./repeated-ops.ts";

/** Ops that are left out: from `start` to before `end`. */
interface Gap {
  readonly start: number;
  readonly end: number;
  readonly period: number;
}

/** Null if what is left reads what is left out, other than layers beside the gap from the last one in it. */
export function withoutLayers(
  whole: FusionData,
  homes: ReadonlyMap<TensorId, Home>,
  runs: readonly Layers[],
  removed: number,
): FusionData | null {
  const gaps = gapsIn(runs, removed);
  if (gaps === null) return null;
  const gapAt = (position: number): Gap | undefined =>
    gaps.find(({ start, end }) => start <= position && position < end);
  const gapOf = (id: TensorId): Gap | undefined => gapAt(homes.get(id)?.position ?? -1);
  /** The tensor in the place of one that is left out; undefined if there is none. */
  const current = (id: TensorId): TensorId | undefined => {
    const [home, gap] = [homes.get(id), gapOf(id)];
    if (home === undefined || gap === undefined) return id;
    const before = home.position - (gap.end - gap.start);
    if (before < gap.start - gap.period) return undefined;
    const op = at(whole.ops, before);
    return (home.isMade ? outputsOf(op) : op.inputs)[home.index];
  };
  const ops = new Map<TensorId, Op>();
  /** By tensor: what is made of it by ops that are left. */
  const madeOf = new Map<TensorId, TensorId[]>();
  for (const [position, op] of whole.ops.entries()) {
    if (gapAt(position) !== undefined) continue;
    const isNear = gaps.some(({ start, end, period }) => start - period <= position && position < end + 2 * period);
    const inputs: TensorId[] = [];
    for (const id of op.inputs) {
      const other = current(id);
      if (other === undefined || (other !== id && !isNear)) return null;
      inputs.push(other);
      pushTo(madeOf, id, op.output);
    }
    ops.set(op.output, inputs.every((id, i) => id === op.inputs[i]) ? op : { ...op, inputs });
  }
  const isLeft = (id: TensorId): boolean => gapOf(id) === undefined;
  const outputs = whole.outputs.filter(isLeft);
  const aliases = aliasesOf(whole, outputs, isLeft);
  const derivations: Derivation[] = [];
  for (const derivation of whole.derivations ?? []) {
    const uses = usesOf(derivation, isLeft, current, madeOf);
    const left = uses === null ? null : derivationOf({ ...derivation, uses }, isLeft, current, homes, ops);
    if (left === null) return null;
    derivations.push(left);
  }
  if (aliases === null) return null;
  return {
    ...whole,
    ops: [...ops.values()],
    inputs: whole.inputs.filter(isLeft),
    outputs,
    ...(whole.aliases === undefined ? {} : { aliases }),
    ...(whole.derivations === undefined ? {} : { derivations }),
  };
}

/** Of runs that read no other, what follows the first layer; of others the layers that read what is left out. */
function gapsIn(runs: readonly Layers[], removed: number): readonly Gap[] | null {
  const firsts: number[] = [];
  for (const { link, times } of runs) {
    const read = link === null ? 1 : at(firsts, link.run) - link.offset;
    const first = link?.sign === -1 ? 1 - read - removed : read;
    // One layer before them is needed in their place.
    if (first < 1 || first + removed > times) return null;
    firsts.push(first);
  }
  return runs.map(({ start, period }, run) => {
    const from = start + at(firsts, run) * period;
    return { start: from, end: from + removed * period, period };
  });
}

/** Null if only one of an input and the output over it is left. */
function aliasesOf(
  whole: FusionData,
  outputs: readonly TensorId[],
  isLeft: (id: TensorId) => boolean,
): readonly Alias[] | null {
  const pairs = (whole.aliases ?? []).map(({ output, input }) => ({ output: at(whole.outputs, output), input }));
  if (pairs.some(({ output, input }) => isLeft(output) !== isLeft(input))) return null;
  return pairs.flatMap(({ output, input }) => (isLeft(output) ? [{ output: outputs.indexOf(output), input }] : []));
}

/** Of cotangents that are left, or that ops which are left read. Null if one has no primal any more. */
function usesOf(
  { uses }: Derivation,
  isLeft: (id: TensorId) => boolean,
  current: (id: TensorId) => TensorId | undefined,
  madeOf: ReadonlyMap<TensorId, readonly TensorId[]>,
): readonly CotangentUse[] | null {
  const left: CotangentUse[] = [];
  for (const { readers, ...use } of uses) {
    const { from, to } = readers;
    const isRead = (madeOf.get(use.cotangent) ?? []).some((id) => from <= id && id < to);
    if (!isLeft(use.cotangent) && !isRead) continue;
    const [primal, cotangent] = [current(use.primal), current(use.cotangent)];
    const passedFrom = use.passedFrom === null ? null : current(use.passedFrom);
    if (primal === undefined || cotangent === undefined || passedFrom === undefined) return null;
    left.push({ primal, cotangent, passedFrom, readers });
  }
  return left;
}

/** Null if what was differentiated is left out, or has no place among what is left. */
function derivationOf(
  { of, cotangents, wrt, gradients, ops: before, uses, whole }: Derivation,
  isLeft: (id: TensorId) => boolean,
  current: (id: TensorId) => TensorId | undefined,
  homes: ReadonlyMap<TensorId, Home>,
  ops: ReadonlyMap<TensorId, Op>,
): Derivation | null {
  const areLeft = [...of, ...cotangents].every((id) => id === null || isLeft(id));
  if (whole !== undefined || !areLeft) return null;
  const kept = [...wrt.keys()].filter((i) => isLeft(gradients[i] ?? at(wrt, i)));
  const differentiated = kept.map((i) => current(at(wrt, i)));
  if (differentiated.includes(undefined)) return null;
  return {
    of,
    cotangents,
    wrt: differentiated.flatMap((id) => id ?? []),
    gradients: kept.map((i) => at(gradients, i)),
    ops: before.flatMap((op) => ops.get(op.output) ?? (homes.has(op.output) ? [] : [op])),
    uses,
  };
}
