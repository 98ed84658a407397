/** The help of a command speaks of its own flags, or of those of a command that it names; its defaults follow one rule. */
import { describe, expect, it } from "vitest";
import { compileRows } from "../../src/cli/compile/compile-plan.ts";
import { flagOfRow, namesOf, type OptionRow, optionRow } from "../../src/compile/options.ts";
import { cli } from "./captured-cli.ts";

const commands = ["lower", "run", "verify", "explain", "compile", "bench", "calibrate"] as const;

function rowsOf(command: (typeof commands)[number]): readonly (readonly [string, OptionRow])[] {
  const own: readonly (readonly [string, OptionRow])[] = command === "compile" ? Object.entries(compileRows) : [];
  return [...own, ...namesOf(command).map((name) => [name, optionRow(name)] as const)];
}

describe.each(commands)("braid %s", (command) => {
  const rows = rowsOf(command);
  const flags = new Set(
    rows.map(([name, row]) => (row.within === undefined ? flagOfRow(name, row) : `--${row.within}`)),
  );

  it("has every flag that its help mentions", () => {
    const missing = rows.flatMap(([name, { help, otherwise = "", otherwiseOf }]) =>
      [help, otherwise, otherwiseOf?.[command] ?? ""]
        .map((text) => text.replaceAll(/braid [a-z]+(?: --[a-z-]+)+/gu, ""))
        .flatMap((text) => [...text.matchAll(/--[a-z][a-z-]*/gu)].map(([flag]) => flag))
        .filter((flag) => !flags.has(flag))
        .map((flag) => `${name}: ${flag}`),
    );
    expect(missing).toEqual([]);
  });

  it("has the usual default of --on and --backend, or the one that its work decides", async () => {
    const { out } = await cli(command, "--help");
    const said = (flag: string): string | undefined =>
      new RegExp(`--${flag} <.*?\\(default:\\s+([^)]*)\\)`, "su").exec(out)?.[1]?.replaceAll(/\s+/gu, " ");
    const on = { explain: "the machine of --profile", compile: "cuda" }[command as string] ?? "cpu";
    const backend = { compile: "cuda, since a plan has no calls of NCCL", bench: undefined, calibrate: undefined };
    expect(said("on")).toBe(on);
    expect(said("backend")).toBe(command in backend ? backend[command as keyof typeof backend] : "nccl");
  });

  const required = ["compile", "calibrate"].includes(command) ? ["-o", "out"] : [];
  it("answers a misspelt flag with the one that is meant, and nothing else", async () => {
    const misspelt = [["--device", "--devices"], ...(flags.has("--json") ? [["--jsn", "--json"]] : [])] as const;
    for (const [flag = "", meant] of misspelt) {
      const { status, err } = await cli(command, ...required, flag, "2");
      expect([status, err]).toEqual([
        2,
        `error[option-unknown]: there is no option ${flag}\n  at: braid ${command}\n  found: ${flag}\n  expected: ${meant}\n  fix: did you mean ${meant}?\n`,
      ]);
    }
    const { err } = await cli(command, ...required, "--quite-another");
    expect(err).toContain(
      `expected: an option that braid ${command} --help lists\n  fix: see braid ${command} --help\n`,
    );
  });
});
