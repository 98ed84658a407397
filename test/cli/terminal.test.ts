/** What is written on a terminal: control characters of programs and files are escaped, Braid's own colours are not. */
import { mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import Table from "cli-table3";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { reportPage } from "../../src/cli/report/report-page.ts";
import { plainBorders } from "../../src/cli/terminal/table-style.ts";
import { writers } from "../../src/cli/terminal/terminal.ts";
import { renderDiagnostic } from "../../src/diagnostics/diagnostic.ts";
import { decodeColumns, encodeColumns } from "../../src/support/columns.ts";
import { escapeControls, escapeLine } from "../../src/support/wording.ts";
import { cli } from "./captured-cli.ts";
import { ownFolder } from "./own-folder.ts";

/** Clears the screen, hides text, renames the window, in two forms, and reverses what follows. */
const evil = "\u001b[2J\u001b[8m\u001b]0;title\u0007\u009b31m\u007f\u202e";
const shown = String.raw`\u001b[2J\u001b[8m\u001b]0;title\u0007\u009b31m\u007f\u202e`;

function written(colored: boolean): { readonly terminal: ReturnType<typeof writers>; readonly text: () => string } {
  let all = "";
  const terminal = writers(
    (text) => (all += text),
    () => {},
    { out: colored, err: colored },
  );
  return { terminal, text: () => all };
}

describe("the writer", () => {
  it("escapes control characters but line ends and tabs", () => {
    const { terminal, text } = written(true);
    terminal.out(`a\tb\r\n${evil}\n`);
    expect(text()).toBe(`a\tb\n${shown}\n`);
  });

  it("lets Braid's colours pass, around escaped text, and no others", () => {
    const { terminal, text } = written(true);
    const { bold, red, green } = terminal.outColors;
    terminal.out(`${bold(red("x"))} ${green(evil)} \u001b[7mforged\u001b[27m`);
    expect(text()).toBe(
      `\u001b[1m\u001b[31mx\u001b[39m\u001b[22m \u001b[32m${shown}\u001b[39m ${String.raw`\u001b[7mforged\u001b[27m`}`,
    );
  });

  it("keeps coloured cells of tables in their columns", () => {
    const { terminal, text } = written(true);
    const table = new Table({ ...plainBorders });
    table.push([terminal.outColors.red("wrong"), "a"], ["fine", "b"]);
    terminal.out(table.toString());
    expect(text()).toBe("\u001b[31mwrong\u001b[39m  a\nfine   b");
  });

  it("adds nothing without colours", () => {
    const { terminal, text } = written(false);
    terminal.out(terminal.outColors.red("x"));
    expect(text()).toBe("x");
  });

  it("writes JSON that says the same", () => {
    const wide = fc.string({ unit: "binary", maxLength: 20 });
    fc.assert(
      fc.property(fc.dictionary(wide, wide), (value) => {
        const { terminal, text } = written(true);
        terminal.out(JSON.stringify(value, undefined, 2));
        expect(JSON.parse(text())).toEqual(value);
        expect(text()).toBe(escapeControls(text()));
      }),
      { seed: 5, numRuns: 30 },
    );
  });
});

it("a diagnostic's parts stay on their lines", () => {
  const text = renderDiagnostic({ code: "option-value", message: "a\nerror[x]: forged", found: evil, notes: ["b\tc"] });
  expect(text).toBe(
    `error[option-value]: a\\nerror[x]: forged\n  found: ${shown}\n  note: b\\tc`
      .replaceAll("\\n", "\\u000a")
      .replaceAll("\\t", "\\u0009"),
  );
  expect(escapeLine(text)).not.toContain("\n");
});

describe("braid", () => {
  const folder = ownFolder();

  it("shows control characters of messages, files, prints and names as text", async () => {
    const file = folder.write(
      "evil.ts",
      `console.log(${JSON.stringify(evil)});\nthrow new Error(${JSON.stringify(evil)});`,
    );
    const dump = folder.write("evil.hir", `%HostIrContainer { ${evil} }`);
    mkdirSync(path.join(folder.path, evil));
    const named = folder.write(`${evil}/none.ts`, "");
    const shipped = readFileSync(path.join(import.meta.dirname, "../../profiles/2xH100.json"), "utf8");
    const profile = folder.write("evil.json", shipped.replace("{", `{${JSON.stringify(evil)}: 1,`));
    const runs = [
      ["verify", file],
      ["verify", dump, "--devices", "2"],
      ["verify", named],
      ["run", file, "--set", `${evil}=3`],
      ["explain", file, "--profile", profile],
      [`${evil}`],
      ["verify", file, `--${evil}`],
    ];
    for (const args of runs) {
      const { status, out, err } = await cli(...args);
      expect([args, status, out]).toEqual([args, 2, ""]);
      expect(err).toMatch(/\\u001b|\\u202e|evil\.hir/u);
      // oxlint-disable-next-line no-control-regex -- what must not be there
      expect(err).not.toMatch(/[^\P{Cc}\n]|[\u202a-\u202e]/u);
      expect(err.match(/^error/gm)).toHaveLength(1);
    }
  });

  it("escapes the texts of reports", async () => {
    const [head = ""] = await reportPage({ title: evil, verdict: { text: evil } } as Parameters<typeof reportPage>[0]);
    expect(head).toContain(`<title>${shown}: ${shown}</title>`);
    expect(decodeColumns(encodeColumns({ title: evil, lines: ["a\nb"] }, escapeControls))).toEqual({
      title: shown,
      lines: ["a\nb"],
    });
  });
});
