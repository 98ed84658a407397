/**
 * Takes one edge out of random lowered programs, and compares the verifier's verdict on what is left with the judge's.
 * The intact program is right by both.
 */
import fc from "fast-check";
import type { CommandList } from "@braid-compiler/braid";
import { at } from "../../../src/support/invariant.ts";
import { compare, type Outcome } from "../mutants/compare.ts";
import { type Edge, type EdgeKind, edgeKinds, edgesOf, withoutEdge } from "./edges.ts";
import { recordSetting, smallSettings } from "./random-setting.ts";

/** The judge's time grows with the cube of the commands. */
const mostCommands = 250;

export type EdgeCounts = { readonly [K in EdgeKind]: { [O in Outcome]: number } };

/** The judge's verdicts by kind of edge. Throws with the smallest setting on which the two verdicts differ. */
export function compareRemovedEdges(count: number, seed?: number): EdgeCounts {
  const none = (): { [O in Outcome]: number } => ({ malformed: 0, wrong: 0, right: 0 });
  const counts: EdgeCounts = {
    event: none(),
    wait: none(),
    signal: none(),
    take: none(),
    "event with its waits": none(),
    "signal with its take": none(),
  };
  const property = fc.property(smallSettings, fc.nat(), fc.nat(), (setting, kind, which) => {
    const lists = recordSetting(setting);
    fc.pre(lists !== null && sizeOf(lists) <= mostCommands);
    const edge = someEdge(lists, kind, which);
    const rest = edge === null ? null : withoutEdge(lists, edge);
    fc.pre(edge !== null && rest !== null);
    const whole = compare(lists);
    if (whole.outcome !== "right" || whole.disagreement !== null)
      throw new Error(`intact: ${whole.outcome}, ${whole.disagreement}`);
    const { outcome, disagreement } = compare(rest);
    if (disagreement !== null) throw new Error(`${JSON.stringify(edge)}: ${disagreement}`);
    counts[edge.kind][outcome]++;
  });
  fc.assert(property, { numRuns: count, maxSkipsPerRun: 50, ...(seed === undefined ? {} : { seed }) });
  return counts;
}

function sizeOf(lists: readonly CommandList[]): number {
  return lists.reduce((sum, { commands }) => sum + commands.length, 0);
}

/** Picks the kind first, so that all kinds are common. Null if nothing orders its streams. */
function someEdge(lists: readonly CommandList[], kind: number, which: number): Edge | null {
  const edges = edgesOf(lists);
  const kinds = edgeKinds.filter((each) => edges.some((edge) => edge.kind === each));
  if (kinds.length === 0) return null;
  const wanted = at(kinds, kind % kinds.length);
  const ofKind = edges.filter((edge) => edge.kind === wanted);
  return at(ofKind, which % ofKind.length);
}
