/** docs/matrix.md holds what this test finds; `npx vitest run test/matrix -u` writes it anew. */
import { expect, it } from "vitest";
import { format, resolveConfig } from "prettier";
import { type LoweringOptions, loweringOptionSchema } from "../../src/passes/options.ts";
import { devices, exampleFusions, idioms, outcome, streams, switches } from "./cells.ts";

const file = new URL("../../docs/matrix.md", import.meta.url).pathname;

it("every example under every combination of lowering options does what docs/matrix.md says", async () => {
  const cells = new Map<string, string>();
  const examples = await exampleFusions();
  for (const { name, fusion } of examples) {
    for (const [row, idiom] of idioms.entries()) {
      const found = new Map<string, Partial<LoweringOptions>[]>();
      for (const switched of switches) {
        const code = await outcome(fusion, { ...idiom, ...switched });
        found.set(code, [...(found.get(code) ?? []), switched]);
      }
      cells.set(`${row} ${name}`, cellText(found));
    }
  }
  const head = ["options", ...examples.map(({ name }) => name)];
  const rows = idioms.map((idiom, row) => [
    flagsOf(idiom),
    ...examples.map(({ name }) => cells.get(`${row} ${name}`) ?? ""),
  ]);
  const table = [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
  const text = `# Examples and options

Every example on ${devices} devices with ${streams} streams, under every combination of lowering options. **ok**: it lowers on every rank, links,
verifies without an error, runs on the machine and has the oracle's result. Else the code of the diagnostic that refuses it
([diagnostics](diagnostics.md)). A cell stands for all ${switches.length} settings of ${switchFlags()}; where they differ, it says so. Written and
checked by test/matrix.

${table}
`;
  await expect(await format(text, { ...(await resolveConfig(file)), parser: "markdown" })).toMatchFileSnapshot(file);
}, 300_000);

function flagsOf(options: Partial<LoweringOptions>): string {
  return Object.entries(options)
    .map(([name, value]) => `\`${flagOf(name)} ${String(value)}\``)
    .join(" ");
}

function flagOf(name: string): string {
  return Object.entries(loweringOptionSchema).find(([known]) => known === name)?.[1].flag ?? name;
}

function switchFlags(): string {
  return Object.values(loweringOptionSchema)
    .flatMap((row) => (row.type === "switch" ? [`\`${row.flag}\``] : []))
    .join(", ");
}

function cellText(found: ReadonlyMap<string, readonly Partial<LoweringOptions>[]>): string {
  const [first, ...others] = [...found].toSorted((a, b) => b[1].length - a[1].length);
  if (first === undefined) return "";
  const exceptions = others.map(([code, settings]) => `${code} with ${settings.map(switchText).join("; ")}`);
  return [first[0], ...exceptions].join(", ");
}

function switchText(options: Partial<LoweringOptions>): string {
  return Object.entries(options)
    .filter(([, on]) => on === true)
    .map(([name]) => name)
    .join(" ");
}
