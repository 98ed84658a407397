/** Every stage of every example and of layered programs keeps its guarantees; lowering itself checks the last one. */
import { expect, it } from "vitest";
import { lower, type LowerOptions } from "@braid-compiler/braid";
import type { Stage } from "../../src/passes/pass.ts";
import { passes, validate } from "../../src/passes/pipeline.ts";
import { keysOf } from "../../src/support/invariant.ts";
import { exampleFiles, loadExample } from "../support/example-program.ts";
import { layeredFusions } from "../support/layered-fusions.ts";

const hostStages = new Map<string, Exclude<Stage, "fusion" | "checked">>(
  Object.values(passes).flatMap(({ name, to }) => (to === "fusion" || to === "checked" ? [] : [[name, to]])),
);

const settings: readonly LowerOptions[] = [
  { rank: 1 },
  { rank: 2, backend: "cuda", protocol: "put", insertReshardingAfter: true },
];

/** The number of host programs that were checked. */
function check(fusion: Parameters<typeof lower>[0]): number {
  let checked = 0;
  for (const options of settings) {
    lower(fusion, {
      ...options,
      onPass: ({ pass, program }) => {
        const stage = hostStages.get(pass);
        if (stage === undefined || !("body" in program)) return;
        validate(stage, program);
        checked++;
      },
    });
  }
  return checked;
}

it.each(exampleFiles)("%s", async (name) => {
  const built = (await loadExample(name)).build({ devices: 4 });
  if ("data" in built) expect(check(built)).toBe(settings.length * hostStages.size);
});

it.each(keysOf(layeredFusions))("%s", (name) => {
  expect(check(layeredFusions[name](2, 4))).toBe(settings.length * hostStages.size);
});
