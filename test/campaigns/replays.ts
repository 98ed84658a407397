import { writeFileSync } from "node:fs";
import { format, resolveConfig } from "prettier";
import { noReplays, replayMutants } from "../verify/mutants/replay-mutants.ts";
import { smallPrograms } from "../verify/mutants/programs.ts";
import type { Campaign, Outcome } from "./campaign.ts";

const usualStep = 40;
const file = new URL("../verify/mutants/replays.md", import.meta.url);

/** Every `step`-th mutant. No fewer than usual are written to replays.md. */
async function countReplays(step: number): Promise<Outcome> {
  let all = noReplays;
  const complaints: string[] = [];
  const rows: string[] = [];
  for (const devices of [1, 2, 3]) {
    for (const streams of [1, 2, 3]) {
      const tally = await replayMutants(await smallPrograms(devices, streams), step);
      const { wrong, differs, shown } = tally.replays;
      complaints.push(...tally.complaints);
      all = {
        wrong: all.wrong + wrong,
        differs: all.differs + differs,
        shown: all.shown + shown,
      };
      rows.push(`| ${devices} | ${streams} | ${wrong} | ${differs} | ${shown} |`);
      console.log(rows.at(-1), `${tally.complaints.length} complaints`);
    }
  }
  const text = `# Replays of mutants

One in ${step} of the mutants of [counts.md](counts.md), as far as the verifier finds them wrong. Differs: outputs unlike the intact program's under one of the verifier's
schedules, or else in the default order, under a seed, or with one command held back until nothing else can move. Shown: under one of the verifier's schedules.
Where outputs differ and no schedule shows it: ${complaints.length}.

| devices | streams | wrong | differs | shown |
| --- | --- | --- | --- | --- |
${rows.join("\n")}
| **all** | | ${all.wrong} | ${all.differs} | ${all.shown} |
`;
  if (step <= usualStep)
    writeFileSync(file, await format(text, { ...(await resolveConfig(file.pathname)), parser: "markdown" }));
  for (const line of complaints.slice(0, 20)) console.log(line);
  return { ok: complaints.length === 0, text: `${all.wrong} wrong mutants, ${complaints.length} complaints` };
}

export const replays: Campaign = {
  what: "one of so many mutants, replayed: the verifier's interleavings show what can differ, its repairs mend it",
  count: usualStep,
  run: countReplays,
};
