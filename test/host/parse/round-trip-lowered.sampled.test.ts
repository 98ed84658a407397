/**
 * `parse` is the inverse of `print` for every example, in every variant of lowering, and for all loops over the
 * devices.
 */
import { expect, it } from "vitest";
import { DiagnosticError, type Fusion, type HostProgram, lower, type LowerOptions } from "@braid-compiler/braid";
import { isFusion } from "@braid-compiler/braid/internals";
import { loadPattern, patternFiles } from "../../support/example-program.ts";
import * as fusions from "../../support/point-to-point-fusions.ts";
import { schedules } from "../../support/point-to-point-schedules.ts";
import { expectRoundTrip } from "../../support/round-trip.ts";
import { combinations } from "../../support/split-cases.ts";
import { sample } from "../../support/suite.ts";

/** The programs of all ranks; none if lowering rejects one. */
function lowered(fusion: Fusion, devices: number, options: Omit<LowerOptions, "rank">): readonly HostProgram[] {
  try {
    return Array.from({ length: devices }, (_, rank) => lower(fusion, { ...options, rank }));
  } catch (error) {
    if (error instanceof DiagnosticError) return [];
    throw error;
  }
}

function expectAll(programs: readonly HostProgram[]): void {
  programs.forEach((program, rank) =>
    expectRoundTrip(
      program,
      [1, 3].map((streams) => ({ rank, streams })),
    ),
  );
}

const variants: readonly Omit<LowerOptions, "rank">[] = [
  {},
  { deallocate: false, shrink: false },
  { insertReshardingAfter: true },
  { interStreamSync: true, p2p: "broadcast" },
  { backend: "cuda" },
  { disablePass: ["convert-op-to-communication"] },
];

const examples = combinations({ name: patternFiles, devices: [1, 2, 8] });

it.each(sample(examples, 53))("$name on $devices devices", async ({ name, devices }) => {
  const example = await loadPattern(name);
  const built = example.build({ devices });
  const programs = isFusion(built)
    ? variants.flatMap((options) => lowered(built, devices, options))
    : Array.from({ length: devices }, (_, rank) => example.build({ devices, rank }) as HostProgram);
  for (const program of programs) expectRoundTrip(program, [{ rank: 0 }, { rank: devices - 1 }]);
  expect(programs.length).toBeGreaterThanOrEqual(devices);
});

const loops = combinations({
  fusion: Object.entries(fusions).map(([name, build]) => ({ name, build })),
  schedule: Object.keys(schedules),
  devices: [2, 5],
});

it.each(sample(loops, 53))("$fusion.name, $schedule, $devices devices", ({ fusion, schedule, devices }) => {
  expectAll(lowered(fusion.build(devices), devices, schedules[schedule] ?? {}));
});
