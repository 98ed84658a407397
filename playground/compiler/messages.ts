/** What the page and its workers send each other. Structured clone keeps all of it. */
import type { BuiltData } from "../../src/compile/program/revive.ts";
import type { Diagnostic } from "../../src/diagnostics/diagnostic.ts";
import type { ParameterValue } from "../../src/host/program-file.ts";
import type { LoweredPart, OtherOptions, PredictedPart, RepairPart, Replay, VerdictPart } from "./parts.ts";

/** Device count and parameters to build a program for. */
export interface Variant {
  readonly devices: number;
  readonly hosts: number;
  /** Values that replace defaults, as texts. */
  readonly params: Readonly<Record<string, string>>;
}

/** To a worker that evaluates one program and is then ended. */
export interface BuildRequest {
  readonly kind: "build";
  readonly text: string;
  /** The program is evaluated once and built for each of them. Of several, one that is refused is null. */
  readonly variants: readonly Variant[];
}

export interface BuiltVariant {
  readonly data: BuiltData;
  readonly params: Readonly<Record<string, ParameterValue>>;
}

export type BuildAnswer =
  | { readonly kind: "built"; readonly variants: readonly (BuiltVariant | null)[] }
  | { readonly kind: "refused"; readonly diagnostics: readonly Diagnostic[] }
  | { readonly kind: "failed"; readonly stack: string };

/** What is compiled: a built program or a model, or the text of a dump. */
export type Source =
  /** `devices`: for how many a model is, where the page does not say. */
  | { readonly kind: "built"; readonly data: BuiltData; readonly devices?: number }
  | { readonly kind: "dump"; readonly file: string; readonly text: string };

/** A host program that the user changed: of `rank`, and of all ranks that run the same one. */
export interface HostEdit {
  readonly rank: number;
  readonly text: string;
}

export interface CompileRequest {
  readonly kind: "compile";
  readonly id: number;
  readonly source: Source;
  /** Null: as many as the dump names. */
  readonly devices: number | null;
  /** Options by name, as texts. */
  readonly options: Readonly<Record<string, string>>;
  /** The text of a machine profile. */
  readonly profile: string;
  /** Whose passes are shown. */
  readonly rank: number;
  readonly edits: readonly HostEdit[];
}

/** Compiles a program and replays the counterexample of a finding, or any run. To a worker of its own. */
export interface ReplayRequest {
  readonly kind: "replay";
  readonly compile: CompileRequest;
  /** Null: a run in a random order. */
  readonly finding: number | null;
  /** Of the random inputs, and of the random order. */
  readonly seed: number;
}

export type ReplayAnswer =
  /** Null if one run cannot show the finding. */
  { readonly kind: "replayed"; readonly replay: Replay | null } | { readonly kind: "failed"; readonly stack: string };

/** Predicted milliseconds for each source, by one option set. */
export interface CurveRequest {
  readonly kind: "curve";
  readonly id: number;
  /** Null for a point without a program. */
  readonly points: readonly ({ readonly source: Source; readonly devices: number } | null)[];
  readonly options: Readonly<Record<string, string>>;
  readonly profile: string;
}

/** What other options would gain. */
export interface OptionsRequest {
  readonly kind: "options";
  readonly id: number;
  readonly compile: CompileRequest;
}

/** The first message of a worker. */
export interface WorkerLoaded {
  readonly kind: "loaded";
}

export type WorkRequest = CompileRequest | CurveRequest | OptionsRequest;
export type WorkerRequest = BuildRequest | WorkRequest;

/** Answers to a `WorkRequest`, in the order in which its parts become known. */
export type WorkPart =
  | { readonly kind: "lowered"; readonly part: LoweredPart }
  | { readonly kind: "verdict"; readonly part: VerdictPart }
  | { readonly kind: "predicted"; readonly part: PredictedPart }
  | { readonly kind: "repair"; readonly part: RepairPart }
  | { readonly kind: "options"; readonly found: readonly OtherOptions[] }
  | { readonly kind: "curve"; readonly milliseconds: readonly (number | null)[] }
  | { readonly kind: "refused"; readonly diagnostics: readonly Diagnostic[] }
  | { readonly kind: "failed"; readonly stack: string }
  /** The request is answered completely. */
  | { readonly kind: "done"; readonly milliseconds: number };

export interface WorkAnswer {
  readonly id: number;
  readonly answer: WorkPart;
}
