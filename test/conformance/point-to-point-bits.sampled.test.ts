/** No order of commands, schedule, protocol or number of streams changes a bit of a loop over the devices. */
import { expect, it } from "vitest";
import type { CpuOptions } from "@braid-compiler/braid/cpu";
import * as programs from "../support/point-to-point-fusions.ts";
import { schedules } from "../support/point-to-point-schedules.ts";
import { bitsOf, differingSeeds, linked } from "../support/seeded-schedules.ts";
import { combinations } from "../support/split-cases.ts";
import { runs, sample } from "../support/suite.ts";

const seeds = runs({ quick: 1, long: 25 });

// `npm run test:campaign -- interleavings` takes 1,000.
it.each(Object.entries(programs))(`${seeds} seeded orders of every kind of loop: %s`, async (_, build) => {
  expect(await differingSeeds(build, seeds)).toEqual([]);
});

const settings = combinations({
  schedule: Object.keys(schedules),
  streams: [1, 2, 3, 8, 11],
  interStreamSync: [false, true],
  cpu: [{ queues: "ranks" }, { interleaving: { kind: "seed", seed: 3 } }] satisfies CpuOptions[],
});

// Quick has every second program.
const every = runs({ quick: 2, long: 1 });

it.each(Object.entries(programs).filter((_, i) => i % every === 0))(
  "every schedule, protocol and number of streams: %s",
  async (_, build) => {
    const fusion = build(8);
    const common = { devices: 8, insertReshardingAfter: true } as const;
    const expected = await bitsOf(fusion, linked(fusion, { ...common, streams: 1 }), {});
    for (const { schedule, streams, interStreamSync, cpu } of sample(settings, 97)) {
      const program = linked(fusion, { ...common, streams, interStreamSync, ...schedules[schedule] });
      expect((await bitsOf(fusion, program, cpu)).equals(expected), `${schedule}, ${streams} streams`).toBe(true);
    }
  },
);
