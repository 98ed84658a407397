/** Random programs: the oracle's values and a clean verifier, or a refusal of Stream where no loop can run. */
import { expect, it } from "vitest";
import { compile, DiagnosticError } from "@braid-compiler/braid";
import { expectOracle } from "../support/expect-oracle.ts";
import { runs } from "../support/suite.ts";
import { randomProgram } from "./random-program.ts";

const [quick, all] = [40, 1200];
const first = runs({ quick: 0, long: quick });
const count = runs({ quick, long: all - quick });
/** In so many tests, which run side by side. */
const groups = 10;

it.each(Array.from({ length: groups }, (_, group) => group))("group %i", { timeout: 600_000 }, async (group) => {
  for (let seed = first + group; seed < first + count; seed += groups) {
    const { fusion, devices } = randomProgram(seed);
    try {
      const compilation = compile(fusion, { devices, notes: false });
      // A device's own part of what every device has looks to the verifier like another device's.
      const findings = compilation.report.findings.filter(({ code }) => code !== "transfer-unclear");
      expect(findings, `seed ${seed}`).toEqual([]);
      await expectOracle(fusion, { devices, rounds: true, machineAlone: true, compilation });
    } catch (error) {
      if (!(error instanceof DiagnosticError)) throw new Error(`seed ${seed}`, { cause: error });
      expect(error.diagnostics[0]?.code, `seed ${seed}: ${error.message}`).toMatch(/^(stream-|point-to-point-)/u);
    }
  }
});
