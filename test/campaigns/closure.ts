import { compareWithClosure } from "../verify/closure/compare-mutants.ts";
import type { Campaign } from "./campaign.ts";

/** Another than the test's. */
const seed = 8;

export const closure: Campaign = {
  what: "random mutants of linked Programs: the verifier agrees with the explicit order of all commands of two runs, byte by byte",
  count: 100_000,
  run: async (count) => {
    const { counts, disagreements } = await compareWithClosure(count, seed);
    for (const line of disagreements.slice(0, 20)) console.log(line);
    const found = [...counts].map(([kind, number]) => `${kind} ${number}`).join(", ");
    return { ok: disagreements.length === 0, text: `${disagreements.length} disagreements (${found})` };
  },
};
