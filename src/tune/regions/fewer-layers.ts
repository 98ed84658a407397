/**
 * The same program with fewer of its equal layers, by which its time is predicted: a program of many layers takes the
 * time of one with few and, for each further layer, what one layer adds. Layers are left out of the Fusion as the user
 * wrote it, before lowering places any tensor. Those that are left must be lowered alike, however many they are.
 */
import { type AnyCompilation, compile, type CompileOptions, loweringOf } from "../../compile/compile.ts";
import type { HasFusionData } from "../../compile/lower.ts";
import type { Program } from "../../commands/program.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import { gemmMicroseconds } from "../../simulate/gemm-cost.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { at, pushTo } from "../../support/invariant.ts";
import type { FusionData, Alias, CotangentUse, Derivation } from "../../ir/fusion-data.ts";
import { homesOf, layersOf, type Home, type Layers } from "./repeated-ops.ts";
import { findRegions, type FoundRegions } from "./split-regions.ts";
import type { TensorId } from "../../ir/domain.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";

/** A program of many layers. */
export interface Layered<Part> {
  /** With few of its layers. */
  readonly few: Part;
  /** With one layer more than `few`. */
  readonly more: Part;
  /** How many layers `more` lacks. */
  readonly missing: number;
}

/** A program of many layers, as the user wrote it. */
export interface FewerLayers extends Layered<HasFusionData> {
  /** With one layer more in each, for layers that are lowered as their neighbours let them. Null for those. */
  readonly larger: (() => FewerLayers | null) | null;
}

/** A program with few of its layers, compiled. */
export interface CompiledFewer {
  readonly source: HasFusionData;
  readonly compilation: AnyCompilation;
  /** The serial form, if it was compiled. */
  readonly serial: Program | null;
}

export type CompiledLayers = Layered<CompiledFewer>;

/** Null where no layers repeat, or some of them cannot be left out. */
export function withFewerLayers(whole: FusionData): FewerLayers | null {
  const homes = homesOf(whole);
  const runs = layersOf(whole, homes);
  if (runs === null) return null;
  const counts = runs.map(({ times }) => times);
  // The longest run keeps a layer on both sides of the gap. A run that lacks the last layer of another has one less.
  const most = Math.min(Math.max(...counts) - 2, Math.min(...counts) - 1);
  const without = (removed: number): HasFusionData | null => {
    const data = withoutLayers(whole, homes, runs, removed);
    return data === null ? null : { data: () => data };
  };
  const layered = (few: HasFusionData | null, removed: number): FewerLayers | null => {
    const more = without(removed - 1);
    if (few === null || more === null) return null;
    const larger = removed === most ? (): FewerLayers | null => layered(more, removed - 1) : null;
    return { few, more, missing: removed - 1, larger };
  };
  return layered(without(most), most);
}

/** A program and its regions. */
export interface RegionsOf extends FoundRegions {
  readonly source: HasFusionData;
}

/** Null if those with few layers have other regions than those with one layer more. */
export function regionsOfFewer(layers: FewerLayers, given: Partial<LoweringOptions>): Layered<RegionsOf> | null {
  const { few, more, missing, larger } = layers;
  const [ofFew, ofMore] = [findRegions(few, given), findRegions(more, given)];
  if (ofFew === null || ofMore === null) return null;
  const isKnown = ({ keys }: FoundRegions, others: FoundRegions): boolean =>
    others.keys.every((key) => keys.includes(key));
  if (isKnown(ofFew, ofMore) && isKnown(ofMore, ofFew))
    return { few: { source: few, ...ofFew }, more: { source: more, ...ofMore }, missing };
  const next = larger?.() ?? null;
  return next === null ? null : regionsOfFewer(next, given);
}

/** Not verified. Null if the layers are not lowered alike. */
export function compileFewerLayers(layers: FewerLayers, options: CompileOptions): CompiledLayers | null {
  const found = regionsOfFewer(layers, loweringOf(options));
  if (found === null) return null;
  const compiled = ({ source }: RegionsOf): CompiledFewer => ({
    source,
    compilation: compile(source, { ...options, verify: "off" }),
    serial: null,
  });
  return { few: compiled(found.few), more: compiled(found.more), missing: found.missing };
}

/** Of a program with so many layers more than that of which `more` is, which has one more than that of `few`. */
export function further(few: number, more: number, missing: number): number {
  return more + missing * (more - few);
}

/** By rank: the GEMMs of such a program, in microseconds. */
export function furtherGemms(few: Program, more: Program, missing: number, profile: MachineProfile): readonly number[] {
  const ofFew = gemmMicroseconds(few, profile);
  return gemmMicroseconds(more, profile).map((ofMore, rank) => further(at(ofFew, rank), ofMore, missing));
}

// A Fusion without some of its equal layers, the same ones in the forward and in the backward pass. Tensors keep their
// numbers. What a layer reads of one that is left out, it reads of the one before.
//
//     A BCD BCD BCD BCD F | HI HI HI HI HI     ->     A BCD BCD F | HI HI HI

/** Ops that are left out: from `start` to before `end`. */
interface Gap {
  readonly start: number;
  readonly end: number;
  readonly period: number;
}

/** Null if what is left reads what is left out, other than layers beside the gap from the last one in it. */
function withoutLayers(
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
