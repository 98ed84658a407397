/**
 * What a change would gain: the same program with other options, or with an edit of its annotations, compiled and
 * predicted. Nothing else is advised.
 */
import { type AnyCompilation, compile, type CompileOptions } from "../compile/compile.ts";
import { flagChangeText, compileNames } from "../compile/options/flags-text.ts";
import { pickOptions, resolveOptions } from "../compile/options/resolve.ts";
import type { HasFusionData } from "../compile/lower.ts";
import { isFusionSource, type ProgramSource } from "../compile/lower-all.ts";
import { DiagnosticError } from "../diagnostics/diagnostic.ts";
import type { LoopRefusal } from "../passes/stream-loops/loop-refusals.ts";
import { type MachineProfile, measuredMargin } from "../simulate/machine-profile.ts";
import { simulate } from "../simulate/simulate.ts";
import { getOrMake, keysOf } from "../support/invariant.ts";
import { type ScheduleCandidate, copyLoops, eitherLoop, libraryLoops, serial } from "../tune/choose/candidates.ts";
import type { ScheduleChoice } from "../tune/choose/schedule-choice.ts";
import { type Cause, causes } from "./causes.ts";
import type { Equal } from "./layers.ts";
import type { Edited } from "./edited-choice.ts";
import { type AnnotationEdit, editsFor } from "./edits.ts";
import { type ExplainedRun, causeTime } from "./explain-run.ts";

/** Options that differ from those of the explained program; of `schedule`, those of its options. */
export type ChangedOptions = Pick<
  CompileOptions,
  "backend" | "p2p" | "protocol" | "overlap" | "deviceLoops" | "streams" | "schedule"
>;

export interface Alternative {
  /** As typed: flags to add, or an edit of the program. */
  readonly change: string;
  /** Null for an edit. */
  readonly options: ChangedOptions | null;
  /** Predicted; null if it is refused. */
  readonly milliseconds: number | null;
  /** The diagnostic's message; null if it compiles. */
  readonly refused: string | null;
}

const loweringChanges: readonly ChangedOptions[] = [
  { backend: "nccl", p2p: "broadcast" },
  { backend: "nccl", p2p: "rotated" },
  { backend: "cuda", p2p: "rotated", protocol: "get" },
  { backend: "cuda", p2p: "rotated", protocol: "put" },
  { backend: "cuda", p2p: "rotated", protocol: "put", deviceLoops: true },
];

/** What may shorten a cause, beside other back ends and numbers of streams. */
const changesFor: { readonly [C in Cause]?: readonly ChangedOptions[] } = {
  queued: [{ schedule: { earlyGathers: true } }],
  order: [{ schedule: { earlyGathers: true } }],
  lastChunk: [{ schedule: { ownLast: true } }],
  latePeer: [{ schedule: { ownLast: true } }],
  localCopy: [{ schedule: { inPlace: true } }],
  sms: [{ schedule: { smMargin: measuredMargin } }],
  interference: [{ schedule: { smMargin: measuredMargin } }],
};

/** The part of the run that a cause has for its changes to be tried, and that a change gains to be advised. */
export const worthIt = 0.01;

export function isCostly(run: Pick<ExplainedRun, "causes" | "milliseconds">, cause: Cause): boolean {
  return causeTime(run, cause) >= worthIt * run.milliseconds;
}

export interface AlternativesOf {
  readonly source: ProgramSource;
  readonly compilation: AnyCompilation;
  readonly run: ExplainedRun;
  /** Those to find edits for, the costliest first: one edit for all that are equal. */
  readonly refusals: readonly Equal<LoopRefusal>[];
  /** For so many of them that the user's code can edit. */
  readonly mostEdited: number;
  /** Chooses the schedule of an edited program, as it was chosen for this one. Null for a program with given options. */
  readonly chosen: ((edit: AnnotationEdit) => Edited | null) | null;
}

/**
 * The fastest first, refused ones last; without those that make the same commands, and edits that gain nothing. Of a
 * chosen schedule only edits are tried.
 */
export function alternatives(
  { source, compilation, run, refusals, mostEdited, chosen }: AlternativesOf,
  { graph = true, onProgress, ...options }: CompileOptions & { readonly graph?: boolean },
  profile: MachineProfile,
): readonly Alternative[] {
  const seen = new Set([commandsText(compilation)]);
  const timeOf = (compiled: AnyCompilation): number => simulate(compiled.program, profile, { graph }).milliseconds;
  const isNew = (compiled: AnyCompilation): boolean => {
    const text = commandsText(compiled);
    const before = seen.size;
    return seen.add(text).size > before;
  };
  const changes = chosen === null ? optionChanges(source, options, run) : [];
  const ofOptions = changes.flatMap((change, i): readonly Alternative[] => {
    onProgress?.("predicting other options", i, changes.length);
    const changed = withChange(options, change);
    const found = {
      change: flagChangeText(pickOptions(compileNames, options), pickOptions(compileNames, changed)),
      options: change,
    };
    const compiled = compiledOrRefusal(source, changed);
    if (typeof compiled === "string") return [{ ...found, milliseconds: null, refused: compiled }];
    return isNew(compiled) ? [{ ...found, milliseconds: timeOf(compiled), refused: null }] : [];
  });
  if (!isFusionSource(source)) return ofOptions.toSorted(sooner);
  const written = (edit: AnnotationEdit): Edited | null => {
    const compiled = editedOrNull(source, edit, options);
    return compiled === null ? null : { compilation: compiled, milliseconds: timeOf(compiled) };
  };
  const known = new Map<string, Edited | null>();
  const editedOnce = (edit: AnnotationEdit): Edited | null =>
    getOrMake(known, edit.text, () => (chosen ?? written)(edit));
  const lists = refusals
    .map((group) => editsFor(group, source.data(), chunksOf(run)))
    .filter((each) => each.some((edits) => edits.length > 0))
    .slice(0, mostEdited)
    .flat();
  const ofEdits = lists.flatMap((edits, i): readonly Alternative[] => {
    onProgress?.("predicting edits of the program", i, lists.length);
    const gaining = edits.flatMap((edit): readonly Alternative[] => {
      const edited = editedOnce(edit);
      if (edited === null || !isNew(edited.compilation)) return [];
      const { milliseconds } = edited;
      const gains = milliseconds < (1 - worthIt) * run.milliseconds;
      return gains ? [{ change: edit.text, options: null, milliseconds, refused: null }] : [];
    });
    return gaining.toSorted(sooner).slice(0, 1);
  });
  return [...ofOptions, ...ofEdits].toSorted(sooner);
}

function sooner(a: Alternative, b: Alternative): number {
  return (a.milliseconds ?? Infinity) - (b.milliseconds ?? Infinity);
}

function optionChanges(source: ProgramSource, options: CompileOptions, run: ExplainedRun): readonly ChangedOptions[] {
  const { streams } = resolveOptions(["streams"], pickOptions(["streams"], options));
  const forCauses = keysOf(causes).flatMap((cause) => (isCostly(run, cause) ? (changesFor[cause] ?? []) : []));
  return [
    ...(isFusionSource(source) ? [...loweringChanges, { overlap: options.overlap === false }] : []),
    ...forCauses,
    ...[Math.floor(streams / 2), 2 * streams].flatMap((count) => (count < 1 ? [] : [{ streams: count }])),
  ];
}

/** As many as the first loop has, or else a usual number. */
function chunksOf({ regions }: ExplainedRun): number {
  return regions.find(({ isLoop }) => isLoop)?.chunks ?? usualChunks;
}

const usualChunks = 4;

/** A protocol that was given with another back end is refused with this one. */
function withChange({ schedule, protocol, ...options }: CompileOptions, change: ChangedOptions): CompileOptions {
  return {
    ...options,
    ...(change.backend !== undefined || protocol === undefined ? {} : { protocol }),
    ...change,
    schedule: { ...schedule, ...change.schedule },
  };
}

export function editedOrNull(
  source: HasFusionData,
  { apply }: AnnotationEdit,
  options: CompileOptions,
): AnyCompilation | null {
  try {
    const data = apply(source.data());
    return compile({ data: () => data }, { ...options, verify: "off" });
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

/** Of all ranks: a change may leave those of one stage as they are. */
function commandsText({ program }: AnyCompilation): string {
  return JSON.stringify(program.ranks.map(({ commands }) => commands));
}

/** The message of the first diagnostic of a program that does not compile. */
function compiledOrRefusal(source: ProgramSource, options: CompileOptions): AnyCompilation | string {
  try {
    return compile(source, { ...options, verify: "off" });
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    return error.diagnostics[0]?.message ?? error.message;
  }
}

/** A form of which the schedule choice has no candidate. */
export interface LeftOutForm {
  readonly name: string;
  readonly because: string;
}

/** Of a program of one region: the forms that the choice did not simulate, and why. */
export function leftOut(
  source: ProgramSource,
  { considered, regions }: ScheduleChoice<AnyCompilation>,
  options: CompileOptions,
): readonly LeftOutForm[] {
  if (regions.length > 0) return [];
  const names = considered.map(({ candidate }) => candidate.name.split(", ")[0]);
  const whole = considered.map(({ candidate }) => candidate.name);
  const isIn = (name: string): boolean => [...whole, ...names].includes(name);
  const roots: readonly Pick<ScheduleCandidate, "name" | "lowering">[] = [
    ...[serial, ...libraryLoops].filter(({ name }) => !whole.includes(name)),
    ...copyLoops.filter(({ name }) => !isIn(name) && !isIn(eitherLoop)),
  ];
  return roots.map(({ name, lowering }) => {
    const given = new Map<string, unknown>(Object.entries(options));
    const excluding = Object.entries(lowering).find(
      ([option, value]) => given.get(option) !== undefined && given.get(option) !== value,
    );
    if (excluding !== undefined)
      return { name, because: `${excluding[0]} is given as ${String(given.get(excluding[0]))}` };
    const compiled = compiledOrRefusal(source, { ...options, ...lowering });
    return { name, because: typeof compiled === "string" ? compiled : "the same commands as another" };
  });
}
