import fc from "fast-check";
import { DiagnosticError, link } from "@braid-compiler/braid";
import { alikePrograms } from "../verify/classes/alike-programs.ts";
import { compareMutants, compareProofs, type ProofCounts } from "../verify/classes/compare-proofs.ts";
import { smallPrograms } from "../verify/mutants/programs.ts";
import { recordSetting, settings } from "../verify/random/random-setting.ts";
import type { Campaign, Outcome } from "./campaign.ts";

/** The number of random programs, for each of which there are ten changes of programs whose ranks are alike. */
async function compareAll(count: number): Promise<Outcome> {
  const random: ProofCounts = { classes: 0, ranks: 0, wrong: 0 };
  fc.assert(
    fc.property(settings, (setting) => {
      const lists = recordSetting(setting);
      fc.pre(lists !== null);
      try {
        random[compareProofs(link(lists))]++;
      } catch (error) {
        if (!(error instanceof DiagnosticError)) throw error;
      }
    }),
    { numRuns: count, maxSkipsPerRun: 50 },
  );
  const programs = [...alikePrograms(4), ...alikePrograms(6)];
  for (const devices of [2, 3, 4])
    programs.push(...(await smallPrograms(devices, 2)).map((each) => ({ ...each, classes: null })));
  const mutants: ProofCounts = { classes: 0, ranks: 0, wrong: 0 };
  let changed = 0;
  for (let seed = 0; changed < 10 * count; seed++) {
    const counts = compareMutants(programs, 1, seed);
    for (const outcome of ["classes", "ranks", "wrong"] as const) mutants[outcome] += counts[outcome];
    changed = mutants.classes + mutants.ranks + mutants.wrong;
  }
  const text = ({ classes, ranks, wrong }: ProofCounts): string =>
    `${classes} proven by class, ${ranks} right, ${wrong} wrong`;
  return { ok: true, text: `programs: ${text(random)}; changes: ${text(mutants)}` };
}

export const classes: Campaign = {
  what: "random programs, and changes of programs whose ranks are alike: the proof by class never holds where that of every rank does not",
  count: 1000,
  run: compareAll,
};
