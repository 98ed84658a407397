/**
 * The same program with fewer of its equal layers, by which its time is predicted: a program of many layers takes the
 * time of one with few and, for each further layer, what one layer adds. Repetitions of regions are left out of the
 * forward and of the backward pass, those of the same layers.
 *
 *     A BCD BCD BCD BCD F | HI HI HI HI HI     ->     A BCD BCD F | HI HI HI
 */
import { type AnyCompilation, compile, type CompileOptions, loweringOf } from "../../compile/compile.ts";
import type { HasFusionData } from "../../compile/lower.ts";
import type { Program } from "../../commands/program.ts";
import type { Tensor, TensorId } from "../../ir/domain.ts";
import { outputsOf } from "../../ir/ops/op.ts";
import { gemmMicroseconds } from "../../simulate/gemm-cost.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { at } from "../../support/invariant.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { regionFusion } from "../../compile/region-fusion.ts";
import { withPlaced } from "./compile-regions.ts";
import { cutRegions, findRegions, type FoundRegions } from "./split-regions.ts";

/** A program with fewer layers. */
export interface FewerLayers extends FoundRegions {
  /** By region: its position in the whole program. */
  readonly positions: readonly number[];
  /** By tensor: its number in the whole program. */
  readonly tensors: readonly TensorId[];
}

export interface Shortened {
  readonly few: FewerLayers;
  /** With one layer more than `few`. */
  readonly more: FewerLayers;
  /** How many layers `more` lacks. */
  readonly missing: number;
}

/** A program with fewer layers, compiled. */
export interface CompiledFewer {
  readonly source: HasFusionData;
  /** The same with only the user's annotations. */
  readonly written: FusionData;
  readonly compilation: AnyCompilation;
}

/** A program of many layers, of which few were compiled. */
export interface CompiledLayers {
  /** How many layers `more` lacks. */
  readonly missing: number;
  readonly few: CompiledFewer;
  /** With one layer more than `few`. */
  readonly more: CompiledFewer;
}

/** Not verified. Null where no layers repeat, or some of them cannot be left out. */
export function compileFewerLayers(source: HasFusionData, options: CompileOptions): CompiledLayers | null {
  const found = findRegions(source, loweringOf(options));
  if (found === null || found.regions.length < fewestRepetitions) return null;
  const shorter = shortened(
    found,
    found.regions.map((region) => regionFusion(found.placed, region).key),
  );
  if (shorter === null) return null;
  const compiled = (fewer: FewerLayers): CompiledFewer => {
    const { placed } = fewer;
    const given = { ...withPlaced(placed, options), verify: "off" } as const;
    return compiledFewer(source, fewer, compile({ data: () => placed }, given));
  };
  return { few: compiled(shorter.few), more: compiled(shorter.more), missing: shorter.missing };
}

/** `whole`: as the user wrote it. */
export function compiledFewer(
  whole: HasFusionData,
  { placed, tensors }: FewerLayers,
  compilation: AnyCompilation,
): CompiledFewer {
  const before = whole.data();
  const own = (id: TensorId): Tensor | undefined => before.tensors[at(tensors, id)];
  const written: FusionData = {
    ...placed,
    tensors: placed.tensors.map((tensor) => ({ ...tensor, mesh: own(tensor.id)?.mesh ?? null })),
    // Without gathers that the regions have.
    ops: placed.ops.filter(({ output }) => own(output) !== undefined),
  };
  return { source: { data: () => placed }, written, compilation };
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

/** Of fewer repetitions, compiling the shorter programs takes as long as compiling the whole. */
const fewestRepetitions = 12;

/** `keys`: by region, equal for equal ones. Null where no layers repeat, or some of them cannot be left out. */
export function shortened(found: FoundRegions, keys: readonly string[]): Shortened | null {
  const runs = repetitionsIn(keys);
  if (runs.length === 0) return null;
  const repeated = Math.min(...runs.map(({ count }) => count));
  const [few, more] = [2, 3].map((kept) => without(found, keys, runs, repeated - kept));
  return few === null || few === undefined || more === null || more === undefined
    ? null
    : { few, more, missing: repeated - 3 };
}

/** Regions from `start` on that repeat every `period`. */
interface Repetition {
  readonly start: number;
  readonly period: number;
  readonly count: number;
}

function repetitionsIn(keys: readonly string[]): readonly Repetition[] {
  const runs: Repetition[] = [];
  for (let start = 0; start < keys.length;) {
    let longest: Repetition | null = null;
    for (let period = 1; start + fewestRepetitions * period <= keys.length; period++) {
      let end = start + period;
      while (end < keys.length && keys[end] === keys[end - period]) end++;
      const count = Math.floor((end - start) / period);
      if (count < fewestRepetitions) continue;
      if (longest === null || count * period > longest.count * longest.period) longest = { start, period, count };
    }
    if (longest !== null) runs.push(longest);
    start += longest === null ? 1 : longest.count * longest.period;
  }
  return runs;
}

/** Regions that are left out: `end` is that of the last. */
interface Gap {
  readonly start: number;
  readonly end: number;
  readonly period: number;
}

/** More combinations of gaps are not tried. */
const mostTried = 1000;

/** The program without so many repetitions of each run, if the layers that these belong to can be found. */
function without(
  found: FoundRegions,
  keys: readonly string[],
  runs: readonly Repetition[],
  removed: number,
): FewerLayers | null {
  // The first run is cut after its first repetition; where the others are cut follows from what they read.
  const [first, ...others] = runs.map(({ start, period, count }, run) => {
    const starts = run === 0 ? 1 : (count - removed - 1) * period + 1;
    return Array.from({ length: starts }, (_, i): Gap => {
      const from = start + period + i;
      return { start: from, end: from + removed * period, period };
    });
  });
  const tried = [first ?? [], ...others].reduce((product, gaps) => product * gaps.length, 1);
  if (tried > mostTried) return null;
  const all = others.reduce<readonly (readonly Gap[])[]>(
    (chosen, gaps) => chosen.flatMap((earlier) => gaps.map((gap) => [...earlier, gap])),
    (first ?? []).map((gap) => [gap]),
  );
  for (const gaps of all) {
    const made = withGaps(found, gaps);
    if (made?.regions.every((region, i) => regionFusion(made.placed, region).key === keys[at(made.positions, i)]))
      return made;
  }
  return null;
}

/** Null if regions read what is left out, other than from a layer before theirs, in whose place there is another. */
function withGaps({ placed, regions }: FoundRegions, gaps: readonly Gap[]): FewerLayers | null {
  const gapOf = (position: number): Gap | undefined =>
    gaps.find(({ start, end }) => start <= position && position < end);
  const madeIn = new Map(regions.flatMap(({ outputs }, position) => outputs.map((id) => [id, position] as const)));
  /** The tensor in the place of one that a region reads; undefined if there is none. */
  const current = (id: TensorId, reader: number): TensorId | undefined => {
    const maker = madeIn.get(id);
    const gap = maker === undefined ? undefined : gapOf(maker);
    if (maker === undefined || gap === undefined) return id;
    const before = maker - (gap.end - gap.start);
    if (before < gap.start - gap.period || reader - maker > 2 * gap.period) return undefined;
    return at(regions, before).outputs[at(regions, maker).outputs.indexOf(id)];
  };
  const positions = [...regions.keys()].filter((position) => gapOf(position) === undefined);
  const ops = [];
  const starts: number[] = [];
  for (const position of positions) {
    const region = at(regions, position);
    const replaced = new Map<TensorId, TensorId>();
    for (const id of region.inputs) {
      const other = current(id, position);
      if (other === undefined) return null;
      replaced.set(id, other);
    }
    starts.push(ops.length);
    for (const op of region.ops) ops.push({ ...op, inputs: op.inputs.map((id) => replaced.get(id) ?? id) });
  }
  const read = new Set(ops.flatMap(({ inputs }) => inputs));
  const made = new Set(ops.flatMap(outputsOf));
  const inputs = placed.inputs.filter((id) => read.has(id));
  const outputs = placed.outputs.filter((id) => made.has(id) || inputs.includes(id));
  const { fusion, order: tensors } = regionFusion(placed, { ops, inputs, outputs });
  const shorter = fusion.data();
  return { placed: shorter, regions: cutRegions(shorter, starts), positions, tensors };
}
