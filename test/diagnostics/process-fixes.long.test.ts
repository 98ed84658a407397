/** Fixes about machines, typed in processes: what they say is done, and the diagnostic is gone. */
import { describe, expect, it } from "vitest";
import { obstacle, ownFakes } from "../backends/cuda/fake/own-fakes.ts";
import { processRows } from "./process-rows.ts";

const fakes = ownFakes(2);

const possible = processRows.filter((row) => (row.obstacle ?? "") === "");

describe.skipIf(obstacle !== null)("fixes about machines", () => {
  it.each(possible)(
    "$help of $code, done, mends it",
    async ({ code, help, err }) => {
      const said = await err(null, fakes());
      const [, fix = ""] = new RegExp(`error\\[${code}\\][^]*?\\n *fix: (.*)`, "u").exec(said) ?? [];
      expect(fix, said).toMatch(help);
      expect(await err(fix, fakes())).toBe("");
    },
    60_000,
  );
});
