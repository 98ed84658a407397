/**
 * The same of every second example under every set of options, on 2 devices, of every sixth on 3, and of every second
 * dump. A third of those on 2 devices are also taken for nvFuser's dumps.
 */
import { describe, expect, it } from "vitest";
import { memoryModels } from "../../../src/compile/memory-models.ts";
import { deletions, exampleDumps, fixtureDumps } from "./deletions.ts";

const onThree = (await exampleDumps(3)).filter((_, i) => i % 6 === 0);
const programs = [...(await exampleDumps(2)), ...onThree, ...fixtureDumps()];
const asNvfuser = (await exampleDumps(2, memoryModels.nvfuser)).filter((_, i) => i % 3 === 1);

describe("without a synchronization line", () => {
  it.each([...programs, ...asNvfuser].filter((_, i) => i % 2 === 0))(
    "$name on $options.devices devices, $options.allocator",
    (whole) => {
      const found = deletions(whole);
      expect(found.length).toBeGreaterThan(0);
      expect(found.filter(({ problems }) => problems.length > 0)).toEqual([]);
    },
  );
});
