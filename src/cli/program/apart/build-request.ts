/** Messages between a command and the thread of its program file (build-thread.ts). Structured clone keeps all. */
import type { Diagnostic } from "../../../diagnostics/diagnostic.ts";
import type { HostProgram } from "../../../host/nodes.ts";
import type { Parameters, ParameterValue } from "../../../host/program-file.ts";
import type { FusionData } from "../../../ir/fusion-data.ts";

export interface BuildRequest {
  readonly file: string;
  readonly devices: number;
  /** Values of `--set`. */
  readonly set: ReadonlyMap<string, ParameterValue>;
}

export function isBuildRequest(value: unknown): value is BuildRequest {
  return typeof value === "object" && value !== null && "file" in value && "devices" in value && "set" in value;
}

/** The program of a file for the requested devices and parameters. */
export interface BuiltData {
  /** A Fusion, or the host program of each rank. */
  readonly source: FusionData | readonly HostProgram[];
  /** The Fusion that a program of host programs names for checks. */
  readonly reference: FusionData | null;
  readonly defaults: Parameters;
}

export type BuildAnswer =
  | { readonly kind: "built"; readonly built: BuiltData }
  | { readonly kind: "refused"; readonly diagnostics: readonly Diagnostic[] }
  /** A bug of Braid: its stack. */
  | { readonly kind: "failed"; readonly stack: string };
