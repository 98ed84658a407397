/** Bytes and values of the programs of programs.ts. */
import { describe, expect, it } from "vitest";
import { compile } from "@braid-compiler/braid";
import { expectOracle } from "../support/expect-oracle.ts";
import { fusionOf, routePrograms } from "./programs.ts";
import { mostReceived } from "./received-bytes.ts";

describe.each(routePrograms)("$name", (row) => {
  it.each(["nccl", "cuda"] as const)("moves no more than today, by %s", (backend) => {
    const { program, report } = compile(fusionOf(row, 4096), { devices: row.devices, backend, notes: false });
    expect(report.findings).toEqual([]);
    expect(mostReceived(program)).toBeLessThanOrEqual(row.today);
    // Fewer would mean that bytes are counted wrong, or that there is a better route than the comment's.
    expect(mostReceived(program)).toBeGreaterThanOrEqual(row.enough);
  });

  it("gives the oracle's result", async () => {
    const { devices, rounds = false } = row;
    await expectOracle(fusionOf(row, 64), { devices, rounds, machineAlone: true });
  });
});
