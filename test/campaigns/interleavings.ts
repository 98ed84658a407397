import * as programs from "../support/point-to-point-fusions.ts";
import { differingSeeds } from "../support/seeded-schedules.ts";
import type { Campaign } from "./campaign.ts";

export const interleavings: Campaign = {
  what: "seeded interleavings of each kind of loop over the devices, for four programs, give the same bits",
  count: 1000,
  run: async (count) => {
    let differing = 0;
    for (const [name, build] of Object.entries(programs)) {
      const lines = await differingSeeds(build, count);
      differing += lines.length;
      for (const line of lines.slice(0, 10)) console.log(`${name}: ${line}`);
    }
    return { ok: differing === 0, text: `${differing} with other bits` };
  },
};
