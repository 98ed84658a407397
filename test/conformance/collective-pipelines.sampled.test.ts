/** Every collective pipeline of nvFuser's tests gives the oracle's result. */
import { it } from "vitest";
import { expectOracle } from "../support/expect-oracle.ts";
import { combinations } from "../support/split-cases.ts";
import { sample } from "../support/suite.ts";
import { pipelines } from "./collective-pipeline-cases.ts";

const cases = combinations({ pipeline: pipelines, devices: [1, 2, 3, 4, 8] });

it.each(sample(cases, 6))("$pipeline.name on $devices devices", async ({ pipeline, devices }) => {
  const { build, insertReshardingAfter = false } = pipeline;
  for (const streams of [1, 3, 8]) await expectOracle(build(devices), { devices, streams, insertReshardingAfter });
});
