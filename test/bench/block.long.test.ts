/** `braid bench block` with every small model, cut and pass. */
import { expect, it } from "vitest";
import { cli } from "../cli/captured-cli.ts";

it("has the right results for every small model, cut and pass, in float and bfloat16", async () => {
  const args = ["--model", "small-llama,small-gpt", "--dtype", "float,bfloat16", "--devices", "2", "--iterations", "1"];
  const { status, out, err } = await cli("bench", "block", ...args, "--validate", "--impl", "braid;chunks=2", "--json");
  expect(status, err).toBe(0);
  const { rows } = JSON.parse(out) as { readonly rows: readonly { readonly partOfBound: number | null }[] };
  expect(rows).toHaveLength(2 * 2 * 2 * 2 * 3);
  for (const { partOfBound } of rows) expect(partOfBound).toBeLessThanOrEqual(1);
}, 60_000);
