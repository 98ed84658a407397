/** A program that is built for the given devices and parameters. */
import type { HasFusionData } from "../../compile/lower.ts";
import type { Signature } from "../../compile/lower-all.ts";
import type { Options } from "../../compile/options.ts";
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import type { HostProgram } from "../../host/nodes.ts";
import type { ImportedModel } from "../../import/model.ts";
import type { ParsedContainer } from "../../host/parse/parse.ts";
import type { Parameters } from "../../host/program-file.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { FewerLayers } from "../../tune/regions/fewer-layers.ts";
import type { LineOf } from "../../verify/order/graph.ts";

/** What the reader of a model file takes. */
export type ModelFlags = Options<"devices" | "entry" | "plan" | "gradients" | "half"> & {
  /** Whether constants of a model are evaluated now: a plan of the program takes all inputs from its caller. */
  readonly fold?: boolean;
};

export type BuildFlags = ModelFlags &
  Options<"set" | "scalar" | "as"> & {
    /** Whether warnings about annotations are printed, or only returned; true if omitted. */
    readonly warn?: boolean;
  };

export interface BuiltProgram {
  /** A Fusion, or the host program of each rank. */
  readonly source: HasFusionData | readonly HostProgram[];
  readonly signature: Signature;
  /** The same with few of its equal layers; null if they are not asked for, or not found. */
  readonly layers: FewerLayers | null;
  /** What a check compares with: the Fusion itself, or the one that the program names. */
  readonly reference: HasFusionData | null;
  /** Where the statements stand in a dump; null for a program file. */
  readonly lineOf: LineOf | null;
  /** The text of a dump; null for other programs. */
  readonly text: string | null;
  /** The containers of a dump, by rank; null for a program file. */
  readonly containers: readonly ParsedContainer[] | null;
  /** The names and constants of a model file; null for others. */
  readonly model: ImportedModel | null;
  /** The parameters in use, including defaults. */
  readonly params: Parameters;
  /** About annotations; none if omitted. */
  readonly warnings?: readonly Diagnostic[];
}

export function fusionSource(data: FusionData): HasFusionData {
  return { data: () => data };
}

/** Finds layers that repeat. Only a command that has a use for them loads what does. */
export type FindLayers = (whole: FusionData) => FewerLayers | null;
