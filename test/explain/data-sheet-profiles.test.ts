/** Profiles of machines that were not measured are what the script makes of data sheets, and say so. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { dataSheetProfile, dataSheets, measuredSheet, profileText } from "../../scripts/data-sheet-profiles.ts";
import { committedErrors } from "../../src/simulate/mean-errors.ts";
import { commandClasses } from "../../src/simulate/command-class.ts";
import type { MachineProfile } from "../../src/simulate/machine-profile.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";

function shipped(name: string): MachineProfile {
  return parseProfile(readFileSync(new URL(`../../profiles/${name}.json`, import.meta.url), "utf8"), name);
}

it("the shortest profile of docs/simulation.md is one", () => {
  const page = readFileSync(new URL("../../docs/simulation.md", import.meta.url), "utf8");
  const [, text = ""] = /```json\n(.*?)```/s.exec(page) ?? [];
  const profile = parseProfile(text, "docs/simulation.md");
  expect(profile.machine).toContain("my GPU");
});

describe.each(Object.entries(dataSheets))("8 x %s", (name, sheet) => {
  const profile = shipped(`8x${name}`);
  const measured = shipped("4xH200");

  it("is what the script makes of its data sheet", () => {
    expect(JSON.parse(profileText(dataSheetProfile(name, measured)))).toEqual(profile);
  });

  it("says that it was not measured, and has wider errors than a measured one", () => {
    expect(profile.machine).toContain("not measured");
    for (const of of commandClasses) {
      expect(profile.residuals?.[of]).toBeGreaterThanOrEqual(2 * committedErrors.classes[of]);
    }
  });

  it("reaches as much of its data sheet as the measured machine does of its own", () => {
    const rate = ({ products }: MachineProfile): number => Math.max(...products.flatMap(({ teraflops }) => teraflops));
    expect(rate(profile) / sheet.teraflops).toBeCloseTo(rate(measured) / measuredSheet.teraflops, 3);
    const perByte = (list: MachineProfile["memory"]): number => {
      const [a, b] = list.slice(-2);
      return ((b?.microseconds ?? NaN) - (a?.microseconds ?? NaN)) / ((b?.bytes ?? NaN) - (a?.bytes ?? NaN));
    };
    for (const [of, figure] of [
      ["memory", "memory"],
      ["localCopies", "memory"],
      ["peerCopies", "link"],
    ] as const) {
      const [now, then] = [perByte(profile[of]), perByte(measured[of])];
      expect((then / now) * (measuredSheet[figure] / sheet[figure])).toBeCloseTo(1, 2);
    }
    const allgather = ({ transfers }: MachineProfile): number =>
      perByte(transfers.find(({ type }) => type === "Allgather")?.timings ?? []);
    const bytes = 7 / 8 / (3 / 4);
    expect((allgather(measured) / allgather(profile)) * bytes * (measuredSheet.link / sheet.link)).toBeCloseTo(1, 2);
  });
});
