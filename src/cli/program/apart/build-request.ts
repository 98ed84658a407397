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

/** The token tells the thread's answer from messages that the file sends. */
export interface BuildStart extends ThreadRequest {
  readonly token: string;
}

export function isBuildStart(value: unknown): value is BuildStart {
  return (
    typeof value === "object" &&
    value !== null &&
    "file" in value &&
    "devices" in value &&
    "hosts" in value &&
    "set" in value &&
    "token" in value
  );
}

export interface BuildMessage {
  readonly token: string;
  readonly answer: BuildAnswer;
}

export type BuildAnswer =
  | { readonly kind: "built"; readonly built: BuiltData }
  | { readonly kind: "refused"; readonly diagnostics: readonly Diagnostic[] }
  /** A bug of Braid: its stack. */
  | { readonly kind: "failed"; readonly stack: string };
