/** Takes one event, wait or signal out of random lowered programs, and compares the verifier's verdict on what is left with the judge's. */
import fc from "fast-check";
import type { CommandList } from "braid";
import { at } from "../../src/support/invariant.ts";
import { compare, type Counts } from "../mutants/compare.ts";
import { type MutatedKind, type Mutant, mutants } from "../mutants/mutate.ts";
import { recordSetting, smallSettings } from "./random-setting.ts";

const edgeKinds = ["event", "wait", "signal", "take"] as const satisfies readonly MutatedKind[];

/** The judge's time grows with the cube of the commands. */
const mostCommands = 250;

/** By kind of the edge: what the judge says. Throws with the smallest setting on which the two verdicts differ. */
export function compareRemovedEdges(count: number, seed?: number): Counts {
  const counts: Counts = new Map(edgeKinds.map((kind) => [kind, { malformed: 0, wrong: 0, right: 0 }]));
  const property = fc.property(smallSettings, fc.nat({ max: 3 }), fc.nat(), (setting, kind, which) => {
    const lists = recordSetting(setting);
    const mutant = lists === null || sizeOf(lists) > mostCommands ? null : withoutOneEdge(lists, kind, which);
    fc.pre(mutant !== null);
    const { outcome, disagreement } = compare(mutant.lists);
    if (disagreement !== null) throw new Error(`${mutant.what}: ${disagreement}`);
    const row = counts.get(mutant.kind);
    if (row !== undefined) row[outcome]++;
  });
  fc.assert(property, { numRuns: count, maxSkipsPerRun: 50, ...(seed === undefined ? {} : { seed }) });
  return counts;
}

function sizeOf(lists: readonly CommandList[]): number {
  return lists.reduce((sum, { commands }) => sum + commands.length, 0);
}

/** One deletion of the given kind; of the next kind where the program has none. Null where nothing orders its streams. */
function withoutOneEdge(lists: readonly CommandList[], kind: number, which: number): Mutant | null {
  const deletions = [...mutants(lists)].filter(({ change }) => change === "delete");
  for (let i = 0; i < edgeKinds.length; i++) {
    const wanted = at(edgeKinds, (kind + i) % edgeKinds.length);
    const ofKind = deletions.filter((mutant) => mutant.kind === wanted);
    if (ofKind.length > 0) return at(ofKind, which % ofKind.length);
  }
  return null;
}
