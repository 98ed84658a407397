/** Texts that cost much or have no meaning get a diagnostic soon. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "@braid-compiler/braid";
import { parseContainers } from "@braid-compiler/braid/internals";

const written = path.resolve(import.meta.dirname, "../../fixtures/dumps/written");

describe("hostile dumps", () => {
  it.each(["%HostIrContainer { ", "%HostIrContainer { () -> () : } // %HostIrContainer "])(
    "40,000 times %j on one line",
    (header) => {
      const start = performance.now();
      expect(() => parseContainers(header.repeat(40_000))).toThrow("dump-syntax");
      // Linear: milliseconds. A copy of the line per header took ten seconds.
      expect(performance.now() - start).toBeLessThan(3000);
    },
  );

  it("a host unit that reads what is not its input", () => {
    const input = "T1_g___bfloat[iS2{i3}, iS3{i4}]";
    const text = readFileSync(path.join(written, "host-unit.hir"), "utf8")
      .replaceAll(`, ${input}, }`, ", }")
      .replace(`\n  ${input}\nOutputs`, "\nOutputs");
    expect(() => parse(text)).toThrow(/HostUnit0 uses T1, which it neither takes nor makes\n.*:3\n/);
  });
});
