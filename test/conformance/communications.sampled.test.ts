/** Every program of raw-communications.ts is proven right and gives the oracle's result, in each back end's idiom. */
import { it } from "vitest";
import { expectReference } from "../support/expect-reference.ts";
import { combinations } from "../support/split-cases.ts";
import { sample } from "../support/suite.ts";
import { rawCommunications, rawProgram, rawReference } from "./raw-communications.ts";

const elements = 6;

const cases = combinations({ program: rawCommunications, backend: ["nccl", "ucc", "cuda"] as const }).flatMap((each) =>
  each.program.devices.map((devices) => ({ ...each, devices })),
);

it.each(sample(cases, 5))("$program.name, $backend, $devices devices", async ({ program, backend, devices }) => {
  const host = rawProgram(program, devices, backend, elements);
  const hosts = Array.from({ length: devices }, () => host);
  await expectReference(hosts, rawReference(program, devices, elements));
});
