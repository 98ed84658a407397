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
import { at } from "../../support/invariant.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { withoutLayers } from "./leave-out-layers.ts";
import { homesOf, layersOf } from "./repeated-ops.ts";
import { findRegions, type FoundRegions } from "./split-regions.ts";

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
