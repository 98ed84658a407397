/** A region that is lowered among others has the statements, in their order, that it has alone. */
import { expect, it } from "vitest";
import { lowerRegions } from "../../../src/compile/lower-regions.ts";
import { lowerRanks } from "../../../src/compile/lower.ts";
import type { Statement } from "../../../src/host/nodes.ts";
import { walk } from "../../../src/host/traverse.ts";
import { at } from "../../../src/support/invariant.ts";
import { regionFusion } from "../../../src/tune/regions/region-fusion.ts";
import { cutRegions, findRegions } from "../../../src/tune/regions/split-regions.ts";
import { exampleFusion } from "../../support/example-program.ts";

/** What is freed among others, later regions decide. */
function kindsOf(body: readonly Statement[]): readonly string[] {
  return walk(body).flatMap(({ kind }) => (kind === "Deallocate" ? [] : [kind]));
}

it.each([{ overlap: false, backend: "nccl" } as const, { deviceLoops: true, backend: "cuda" } as const])(
  "each third of two layers, both passes: %j",
  async (lowering) => {
    const fusion = await exampleFusion("hosts/llama.ts", 4, { BACKWARD: 1, B: 4, L: 64, H: 64 });
    const found = findRegions(fusion, {});
    if (found === null) throw new Error("no regions");
    const { placed } = found;
    // Of many ops, among which communications find some to run beside.
    const third = Math.floor(placed.ops.length / 3);
    const regions = cutRegions(placed, [0, third, 2 * third]);
    const { hosts } = lowerRegions(
      placed,
      regions.map((region) => ({ region, lowering })),
      4,
    );
    for (const rank of [0, 3]) {
      for (const [i, region] of regions.entries()) {
        const alone = lowerRanks(regionFusion(placed, region).fusion, 4, lowering);
        const { body, regions: regionOf = [] } = at(hosts, rank);
        const own = body.filter((_, position) => regionOf[position] === i);
        expect(kindsOf(own)).toEqual(kindsOf(at(alone.hosts, rank).body));
      }
    }
  },
);
