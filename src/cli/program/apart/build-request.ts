/** Messages between a command and the thread of its program file (build-thread.ts). Structured clone keeps all. */
import type { BuiltData } from "../../../compile/program/revive.ts";
import type { Diagnostic } from "../../../diagnostics/diagnostic.ts";
import type { ParameterValue } from "../../../host/program-file.ts";

export interface ThreadRequest {
  readonly file: string;
  readonly devices: number;
  readonly hosts: number;
  /** Values of `--set`. */
  readonly set: ReadonlyMap<string, ParameterValue>;
}

export type BuildAnswer =
  | { readonly kind: "built"; readonly built: BuiltData }
  | { readonly kind: "refused"; readonly diagnostics: readonly Diagnostic[] }
  /** A bug of Braid: its stack. */
  | { readonly kind: "failed"; readonly stack: string };
