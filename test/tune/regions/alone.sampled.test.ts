/** A region that is lowered among others has the statements, in their order, that it has alone. */
import { print } from "@braid-compiler/braid";
import { expect, it } from "vitest";
import { lowerRegions, type RegionTemplates } from "../../../src/compile/lower-regions.ts";
import { lowerRanks } from "../../../src/compile/lower.ts";
import type { Statement } from "../../../src/host/nodes.ts";
import { walk } from "../../../src/host/traverse.ts";
import { nameOf } from "../../../src/ir/origin.ts";
import { printTensor } from "../../../src/ir/print-tensor.ts";
import { at } from "../../../src/support/invariant.ts";
import { regionFusion } from "../../../src/compile/region-fusion.ts";
import { cutRegions, findRegions } from "../../../src/tune/regions/split-regions.ts";
import { exampleFusion } from "../../support/example-program.ts";
import { everyNth } from "../../support/suite.ts";

/** What is freed among others, later regions decide. */
function kindsOf(body: readonly Statement[]): readonly string[] {
  return walk(body).flatMap(({ kind }) => (kind === "Deallocate" ? [] : [kind]));
}

const lowerings = [
  { deviceLoops: true, backend: "cuda" },
  { overlap: false, backend: "nccl" },
] as const;

it.each(everyNth(lowerings, 2))("each third of two layers, both passes: %j", async (lowering) => {
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
    new Map(),
  );
  for (const rank of [0, 3]) {
    for (const [i, region] of regions.entries()) {
      const alone = lowerRanks(regionFusion(placed, region).fusion, 4, lowering);
      const { body, regions: regionOf = [] } = at(hosts, rank);
      const own = body.filter((_, position) => regionOf[position] === i);
      expect(kindsOf(own)).toEqual(kindsOf(at(alone.hosts, rank).body));
    }
  }
});

it("equal regions, which are lowered once, with the numbers and names that each would have", async () => {
  const fusion = await exampleFusion("hosts/llama.ts", 4, { LAYERS: 3, BACKWARD: 1, B: 4, L: 64, H: 64 });
  const found = findRegions(fusion, {});
  if (found === null) throw new Error("no regions");
  const loops = { deviceLoops: true, backend: "cuda", p2p: "rotated" } as const;
  const each = found.regions.map((region, i) => ({ region, lowering: i % 5 === 0 ? { overlap: false } : loops }));
  const textOf = (templates: RegionTemplates): readonly string[] =>
    lowerRegions(found.placed, each, 4, templates).hosts.map((host) =>
      [print(host), ...host.tensors.map((tensor) => `${printTensor(tensor)} ${nameOf(tensor)}`)].join("\n"),
    );
  const templates: RegionTemplates = new Map();
  const text = textOf(templates);
  expect(templates.size).toBeLessThan(each.length);
  expect(text).toEqual(textOf(new Forgetful()));
  expect(text).toEqual(textOf(templates));
});

class Forgetful<K, V> extends Map<K, V> {
  override get(): undefined {
    return undefined;
  }
}
