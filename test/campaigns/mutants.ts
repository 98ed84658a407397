import { writeFileSync } from "node:fs";
import { format, resolveConfig } from "prettier";
import { compareMutants, type Counts } from "../verify/mutants/compare.ts";
import { smallPrograms } from "../verify/mutants/programs.ts";
import type { Campaign, Outcome } from "./campaign.ts";

const file = new URL("../verify/mutants/counts.md", import.meta.url);

/** Every `step`-th mutant. All of them are written to counts.md. */
async function countMutants(step: number): Promise<Outcome> {
  const total: Counts = new Map();
  const disagreements: string[] = [];
  let programs = 0;
  for (const devices of [1, 2, 3]) {
    for (const streams of [1, 2, 3]) {
      const small = await smallPrograms(devices, streams);
      const tally = compareMutants(small, step);
      programs += small.length;
      disagreements.push(...tally.disagreements);
      for (const [row, counts] of tally.counts) {
        const sum = total.get(row) ?? { malformed: 0, wrong: 0, right: 0 };
        total.set(row, {
          malformed: sum.malformed + counts.malformed,
          wrong: sum.wrong + counts.wrong,
          right: sum.right + counts.right,
        });
      }
      console.log(
        `${devices} devices, ${streams} streams: ${small.length} programs, ${tally.disagreements.length} disagreements`,
      );
    }
  }
  const sum = { malformed: 0, wrong: 0, right: 0 };
  const rows = [...total]
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([name, { malformed, wrong, right }]) => {
      sum.malformed += malformed;
      sum.wrong += wrong;
      sum.right += right;
      return `| ${name} | ${malformed + wrong + right} | ${malformed} | ${wrong} | ${right} |`;
    });
  const text = `# Mutants

Every single deletion, retargeting and reordering of an event, wait, signal, transfer, send, receive, peer copy and combination in ${programs}
programs: the examples under every set of options that changes their command lists, on 1 to 3 devices and streams
(test/verify/mutants/programs.ts). Refused by link: the ranks' lists do not fit together, so that there is nothing to verify. Wrong and right are the judge's
verdict; the verifier's differs on ${disagreements.length}.

| kind and change | mutants | refused by link | wrong | right |
| --- | --- | --- | --- | --- |
${rows.join("\n")}
| **all** | ${sum.malformed + sum.wrong + sum.right} | ${sum.malformed} | ${sum.wrong} | ${sum.right} |
`;
  if (step === 1)
    writeFileSync(file, await format(text, { ...(await resolveConfig(file.pathname)), parser: "markdown" }));
  for (const line of disagreements.slice(0, 20)) console.log(line);
  const { malformed, wrong, right } = sum;
  return {
    ok: disagreements.length === 0,
    text: `${malformed + wrong + right} mutants, ${disagreements.length} disagreements`,
  };
}

export const mutants: Campaign = {
  what: "one of so many mutants of all small programs: verifier and judge agree",
  count: 1,
  run: countMutants,
};
