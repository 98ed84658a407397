/** What other options would gain: the same program, compiled and predicted with one of them changed. */
import { type AnyCompilation, compile, type CompileOptions } from "../compile/compile.ts";
import { pickOptions, resolveOptions } from "../compile/options/resolve.ts";
import { isFusionSource, type ProgramSource } from "../compile/lower-all.ts";
import { DiagnosticError } from "../diagnostics/diagnostic.ts";
import type { LoweringOptions } from "../passes/options.ts";
import type { MachineProfile } from "../simulate/machine-profile.ts";
import { simulate } from "../simulate/simulate.ts";
import { timeText } from "../support/quantities.ts";
import { type ScheduleCandidate, copyLoops, eitherLoop, libraryLoops, serial } from "../tune/choose/candidates.ts";
import type { ScheduleChoice } from "../tune/choose/schedule-choice.ts";

/** Options that differ from those of the explained program. */
export type ChangedOptions = Partial<
  Pick<LoweringOptions, "backend" | "p2p" | "protocol" | "overlap" | "deviceLoops">
> & {
  readonly streams?: number;
};

export interface Alternative {
  readonly options: ChangedOptions;
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
  { overlap: false },
];

/** The fastest first, refused ones last; without those that make the same commands. */
export function alternatives(
  source: ProgramSource,
  compilation: AnyCompilation,
  { graph = true, onProgress, ...options }: CompileOptions & { readonly graph?: boolean },
  profile: MachineProfile,
): readonly Alternative[] {
  const { streams } = resolveOptions(["streams"], pickOptions(["streams"], options));
  const changes = [
    ...(isFusionSource(source) ? loweringChanges : []),
    ...[Math.floor(streams / 2), 2 * streams].flatMap((count) => (count < 1 ? [] : [{ streams: count }])),
  ];
  const seen = new Set([commandsText(compilation)]);
  const found = changes.flatMap((change, i): readonly Alternative[] => {
    onProgress?.("predicting other options", i, changes.length);
    const compiled = compiledOrRefusal(source, { ...withoutProtocol(options, change), ...change });
    if (typeof compiled === "string") return [{ options: change, milliseconds: null, refused: compiled }];
    const text = commandsText(compiled);
    if (seen.has(text)) return [];
    seen.add(text);
    const { milliseconds } = simulate(compiled.program, profile, { graph });
    return [{ options: change, milliseconds, refused: null }];
  });
  return found.toSorted((a, b) => (a.milliseconds ?? Infinity) - (b.milliseconds ?? Infinity));
}

/** A protocol that was given with another back end is refused with this one. */
function withoutProtocol({ protocol, ...options }: CompileOptions, { backend }: ChangedOptions): CompileOptions {
  return backend !== undefined || protocol === undefined ? options : { ...options, protocol };
}

function commandsText({ program }: AnyCompilation): string {
  return JSON.stringify(program.ranks[0]?.commands);
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
  { considered, regions, leftOut: tooSlow }: ScheduleChoice<AnyCompilation>,
  options: CompileOptions,
): readonly LeftOutForm[] {
  if (regions.length > 0) return [];
  const bounded = tooSlow.map(({ name, least }) => ({ name, because: `takes at least ${timeText(least)}` }));
  const names = considered.map(({ candidate }) => candidate.name.split(", ")[0]);
  const whole = considered.map(({ candidate }) => candidate.name);
  const isIn = (name: string): boolean =>
    [...whole, ...names].includes(name) || tooSlow.some((each) => each.name === name);
  const roots: readonly Pick<ScheduleCandidate, "name" | "lowering">[] = [
    ...[serial, ...libraryLoops].filter(({ name }) => !whole.includes(name)),
    ...copyLoops.filter(({ name }) => !isIn(name) && !isIn(eitherLoop)),
  ];
  const excluded = roots.map(({ name, lowering }) => {
    const given = new Map<string, unknown>(Object.entries(options));
    const excluding = Object.entries(lowering).find(
      ([option, value]) => given.get(option) !== undefined && given.get(option) !== value,
    );
    if (excluding !== undefined)
      return { name, because: `${excluding[0]} is given as ${String(given.get(excluding[0]))}` };
    const compiled = compiledOrRefusal(source, { ...options, ...lowering });
    return { name, because: typeof compiled === "string" ? compiled : "the same commands as another" };
  });
  return [...bounded, ...excluded];
}
