/** docs/matrix.md holds what this test finds; `npx vitest run test/matrix -u` writes it anew. */
import { expect, it } from "vitest";
import { format, resolveConfig } from "prettier";
import { optionRow } from "../../src/compile/options.ts";
import type { LoweringOptions } from "../../src/passes/options.ts";
import {
  devices,
  patternFusions,
  flagsOf,
  switchFlag,
  idioms,
  outcomesOf,
  refused,
  streams,
  switches,
  switchNames,
} from "./cells.ts";

const file = new URL("../../docs/matrix.md", import.meta.url).pathname;

it("every pattern under combinations of lowering options does what docs/matrix.md says", async () => {
  const cells = new Map<string, string>();
  const patterns = await patternFusions();
  for (const { name, fusion } of patterns) {
    const outcome = outcomesOf(fusion);
    for (const [row, idiom] of idioms.entries()) {
      const found: Cell[] = [];
      for (const switched of switches) found.push({ switched, code: await outcome({ ...idiom, ...switched }) });
      cells.set(`${row} ${name}`, cellText(found));
    }
  }
  const head = ["options", "not ok"];
  const rows = idioms.flatMap((idiom, row) => {
    const outcomes = patterns.map(({ name }) => [name, cells.get(`${row} ${name}`) ?? ""] as const);
    if (outcomes.every(([, outcome]) => outcome === refused)) return [];
    const others = outcomes.filter(([, outcome]) => outcome !== "ok");
    return [[flagsOf(idiom), others.map(([name, outcome]) => `\`${name}\`: ${outcome}`).join("; ")]];
  });
  const table = [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
  const text = `# Patterns and options

    braid run examples/pipeline.ts --devices 4 --backend cuda --schedule streams=3,p2p=rotated --check

Every pattern of [examples.md](examples.md) is tried on ${devices} devices with ${streams} streams, under combinations of lowering options.
Chunks and devices are axes of their own, as in the [programs](../test/fixtures/programs) that are tested. Without an entry under "not ok", a
pattern lowers on every rank, links, verifies, runs, and gives the oracle's result. An entry is the [code](diagnostics.md) of the refusal.

A row stands for ${switches.length} settings of ${switchNames.map((name) => `\`${switchFlag(name)}\``).join(", ")}: none, each, every two, and all of
them. If they differ, the entry says how. Combinations of \`--backend\`, \`--schedule p2p\` and \`--schedule protocol\` without a row are refused with
\`${refused}\` for every pattern. \`npx vitest run test/matrix\` checks this page; with \`-u\` it rewrites it.

${table}
`;
  await expect(await format(text, { ...(await resolveConfig(file)), parser: "markdown" })).toMatchFileSnapshot(file);
}, 300_000);

interface Cell {
  readonly switched: Partial<LoweringOptions>;
  readonly code: string;
}

/**
 * The outcome with every switch at its default, then every other one with the flags that bring it about; flags that
 * change nothing are not named.
 */
function cellText(cells: readonly Cell[]): string {
  const relevant = switchNames.filter((name) =>
    cells.some(({ switched, code }) =>
      cells.some((other) => other.code !== code && differences(switched, other.switched).join() === name),
    ),
  );
  const settings = new Map<string, string>();
  for (const { switched, code } of cells) {
    const flags = relevant
      .filter((name) => switched[name] !== optionRow(name).default)
      .map((name) => `\`${switchFlag(name)}\``);
    settings.set(flags.join(" "), code);
  }
  const usual = settings.get("");
  const exceptions = [...settings].filter(([, code]) => code !== usual);
  return [usual, ...exceptions.map(([flags, code]) => `${code} with ${flags}`)].join(", ");
}

function differences(a: Partial<LoweringOptions>, b: Partial<LoweringOptions>): readonly string[] {
  return switchNames.filter((name) => a[name] !== b[name]);
}
