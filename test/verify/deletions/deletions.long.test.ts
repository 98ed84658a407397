/** The same of every example under every set of options, on 2 and 3 devices, and of every dump. */
import { describe, expect, it } from "vitest";
import { deletions, exampleDumps, fixtureDumps } from "./deletions.ts";

const programs = [...(await exampleDumps(2)), ...(await exampleDumps(3)), ...fixtureDumps()];

describe("without a synchronization line", () => {
  it.each(programs)("$name on $options.devices devices", (whole) => {
    const found = deletions(whole);
    expect(found.length).toBeGreaterThan(0);
    expect(found.filter(({ problems }) => problems.length > 0)).toEqual([]);
  });
});
