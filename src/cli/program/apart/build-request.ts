/** Messages between a command and the thread of its program file (build-thread.ts). Structured clone keeps all. */
import type { BuiltData } from "../../../compile/program/revive.ts";
import type { Diagnostic } from "../../../diagnostics/diagnostic.ts";
import type { MessagePort } from "node:worker_threads";
import type { ParameterValue } from "../../../host/program-file.ts";

export interface ThreadRequest {
  readonly file: string;
  readonly devices: number;
  readonly hosts: number;
  /** Values of `--set`. */
  readonly set: ReadonlyMap<string, ParameterValue>;
}

/** Answers go to a port of their own: what the file sends to `parentPort` is none. */
export interface BuildStart extends ThreadRequest {
  readonly port: MessagePort;
}

export type BuildAnswer =
  | { readonly kind: "built"; readonly built: BuiltData }
  | { readonly kind: "refused"; readonly diagnostics: readonly Diagnostic[] }
  /** A bug of Braid: its stack. */
  | { readonly kind: "failed"; readonly stack: string };
