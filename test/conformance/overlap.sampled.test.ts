/**
 * nvFuser's hand-built overlap programs, with their streams joined and as written: equal to the matmul on every back
 * end, over repeated runs. Joined they are proven correct; as written the verifier reports findings.
 */
import { it } from "vitest";
import type { HostProgram } from "@braid-compiler/braid";
import { expectReference } from "../support/expect-reference.ts";
import { referenceOf } from "../support/reference.ts";
import { sample } from "../support/suite.ts";
import { overlapPrograms } from "./overlap-programs.ts";
import { ringPrograms } from "./ring-programs.ts";

const programs = [...overlapPrograms, ...ringPrograms];

const onRanks = (host: HostProgram, devices: number): readonly HostProgram[] =>
  Array.from({ length: devices }, () => host);

const onDevices = programs.flatMap((program) => program.devices.map((devices) => ({ program, devices })));

it.each(sample(onDevices, 31))("$program.name on $devices devices", async ({ program, devices }) => {
  const { build, reference } = program;
  const hosts = onRanks(build(devices, "joined"), devices);
  await expectReference(hosts, referenceOf(reference(devices)), { runs: 4 });
});

const asWritten = onDevices.filter(({ program }) => program.foundAsWritten !== null);

it.each(sample(asWritten, 31))("$program.name, as written, on $devices devices", async ({ program, devices }) => {
  const { build, reference, foundAsWritten } = program;
  const hosts = onRanks(build(devices, "as written"), devices);
  await expectReference(hosts, referenceOf(reference(devices)), { findings: foundAsWritten ?? [] });
});
