/**
 * Explanations of programs of many equal layers, by few of them: what two and three layers take is compared, and each
 * further layer counts as what the third one adds.
 */
import { byCommandClass } from "../simulate/command-class.ts";
import { at, groupedBy, keysOf } from "../support/invariant.ts";
import type { RankOverlap } from "../trace/overlap.ts";
import { further } from "../tune/regions/fewer-layers.ts";
import { causes } from "./causes.ts";
import { causeTime, type ExplainedRun, explainedCauses, secondCauses } from "./explain-run.ts";
import type { Floor } from "./floor.ts";
import type { RegionRow } from "./region-rows.ts";

/** The run of a program with so many layers more than `more`, whose regions, idle times and trace it has. */
export function furtherRun(few: ExplainedRun, more: ExplainedRun, missing: number): ExplainedRun {
  const of = (quantity: (run: ExplainedRun) => number): number => further(quantity(few), quantity(more), missing);
  const [ofFew, ofMore] = [secondCauses(few.idle), secondCauses(more.idle)];
  const also = new Map(
    [...ofMore].map(([cause, others]) => {
      const before = ofFew.get(cause);
      return [
        cause,
        new Map([...others].map(([other, time]) => [other, further(before?.get(other) ?? 0, time, missing)])),
      ];
    }),
  );
  return {
    ...more,
    milliseconds: of(({ milliseconds }) => milliseconds),
    floor: furtherFloor(few.floor, more.floor, missing),
    exposed: of(({ exposed }) => exposed),
    causes: explainedCauses(new Map(keysOf(causes).map((cause) => [cause, of((run) => causeTime(run, cause))])), also),
    path: byCommandClass((name) => of(({ path }) => path[name])),
    loopedGemms: of(({ loopedGemms }) => loopedGemms),
    besideGemms: of(({ besideGemms }) => besideGemms),
    overlap: furtherOverlap(few.overlap, more.overlap, missing),
  };
}

function furtherFloor(few: Floor, more: Floor, missing: number): Floor {
  const of = (bound: "compute" | "communication" | "chain"): number => further(few[bound], more[bound], missing);
  const bounds = { compute: of("compute"), communication: of("communication"), chain: of("chain") };
  return { milliseconds: Math.max(...Object.values(bounds)), ...bounds };
}

function furtherOverlap(few: RankOverlap, more: RankOverlap, missing: number): RankOverlap {
  const of = (state: Exclude<keyof RankOverlap, "rank" | "overlap">): number =>
    further(few[state], more[state], missing);
  const [communication, hidden] = [of("communication"), of("hidden")];
  return {
    ...more,
    kernels: of("kernels"),
    copies: of("copies"),
    transfers: of("transfers"),
    waiting: of("waiting"),
    communication,
    hidden,
    overlap: communication === 0 ? null : hidden / communication,
  };
}

/** Entries of a table that are equal but for numbers of tensors. */
export interface Equal<T> {
  /** In the part that was compiled. */
  readonly entries: readonly T[];
  /** In the whole program. */
  readonly count: number;
}

/** A whole program, or one of which few layers were compiled. */
type Layered<Part> = Part & { readonly layers: { readonly missing: number; readonly few: Part } | null };

/** Entries with equal texts are one, in the order of the first ones. */
export function equalEntries<Part, T>(
  whole: Layered<Part>,
  entriesOf: (part: Part) => readonly T[],
  textOf: (entry: T) => string,
): readonly Equal<T>[] {
  const grouped = (part: Part): ReadonlyMap<string, readonly T[]> => groupedBy(entriesOf(part), textOf);
  const { layers } = whole;
  const few = layers === null ? null : grouped(layers.few);
  return [...grouped(whole)].map(([text, entries]) => ({
    entries,
    count: further(few?.get(text)?.length ?? 0, entries.length, layers?.missing ?? 0),
  }));
}

/**
 * `80 x T3` for equal texts, the text alone of one, and `2 x f(a/b)` for the two texts `f(a)` and `f(b)`, which may
 * differ in names without being of equal layers.
 */
export function countedText(count: number, texts: readonly string[]): string {
  const [first = "", second] = texts;
  if (count === 1) return first;
  return `${count} x ${count > 2 || second === undefined ? first : bothNames(first, second)}`;
}

/** The first text, with the names in the second at their places. Numbers of tensors say nothing. */
function bothNames(first: string, second: string): string {
  const [own, other] = [first, second].map((text) => text.split(/([A-Za-z_][\w.]*)/u));
  if (own === undefined || own.length !== other?.length) return first;
  return own
    .map((part, i) => (part === other[i] || /^(?:T\d+|\W*)$/u.test(part) ? part : `${part}/${other[i] ?? ""}`))
    .join("");
}

/** A text by which statements of equal layers are equal. */
export function withoutNumbers(text: string): string {
  return text.replaceAll(/\d+/gu, "#");
}

/** Regions that differ in numbers of tensors and in times alone, as those of equal layers do. */
export interface EqualRegions {
  readonly count: number;
  /** The first one, with the means of their times. */
  readonly row: RegionRow;
  /** Those that were compiled. */
  readonly rows: readonly RegionRow[];
}

/** In the order of the first ones. */
export function equalRegions(
  explanation: Layered<{ readonly run: Pick<ExplainedRun, "regions"> }>,
): readonly EqualRegions[] {
  const textOf = ({ statement, isLoop, chunks, streams, sent, received, transferred }: RegionRow): string =>
    JSON.stringify([withoutNumbers(statement), isLoop, chunks, streams, sent, received, transferred]);
  return equalEntries(explanation, ({ run }) => run.regions, textOf).map(({ entries, count }): EqualRegions => {
    const mean = (of: (row: RegionRow) => number): number =>
      entries.reduce((sum, row) => sum + of(row), 0) / entries.length;
    const first = at(entries, 0);
    const times = {
      gemms: mean(({ gemms }) => gemms),
      communication: mean((row) => row.communication),
      hidden: first.hidden === null ? null : mean(({ hidden }) => hidden ?? 0),
      exposed: mean(({ exposed }) => exposed),
    };
    return { count, row: { ...first, ...times }, rows: entries };
  });
}
