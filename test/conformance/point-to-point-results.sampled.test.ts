/** Every pattern of point-to-point-patterns.ts gives the oracle's result under every schedule, on 1 to 8 devices. */
import { it } from "vitest";
import { expectOracle } from "../support/expect-oracle.ts";
import { schedules } from "../support/point-to-point-schedules.ts";
import { combinations } from "../support/split-cases.ts";
import { sample } from "../support/suite.ts";
import { patterns } from "./point-to-point-patterns.ts";

const cases = combinations({ pattern: patterns, schedule: Object.keys(schedules), devices: [1, 2, 3, 4, 5, 6, 7, 8] });

it.each(sample(cases, 41, 2))("$pattern.name, $schedule, $devices devices", async ({ pattern, schedule, devices }) => {
  const { build, options = {} } = pattern;
  // More streams than iterations too; what lies between is tested on all devices.
  for (const streams of devices === 8 ? [1, 2, 3, 8] : [2, 8]) {
    await expectOracle(build(devices), { devices, streams, ...options, ...schedules[schedule] });
  }
});
