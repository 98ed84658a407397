/**
 * nvFuser's hand-built overlap programs, with their streams joined and as they were written: equal to the matmul on every back end, over
 * repeated runs. Joined they are proven right; as written the verifier says what is wrong.
 */
import { describe, it } from "vitest";
import type { HostProgram } from "braid";
import { expectReference } from "../support/expect-reference.ts";
import { referenceOf } from "../support/reference.ts";
import { overlapPrograms } from "./overlap-programs.ts";
import { ringPrograms } from "./ring-programs.ts";

const programs = [...overlapPrograms, ...ringPrograms];

const onRanks = (host: HostProgram, devices: number): readonly HostProgram[] =>
  Array.from({ length: devices }, () => host);

describe.each(programs)("$name", ({ devices: counts, build, reference }) => {
  it.each(counts)("on %i devices", async (devices) => {
    const hosts = onRanks(build(devices, "joined"), devices);
    await expectReference(hosts, referenceOf(reference(devices)), { runs: 4 });
  });
});

const written = programs.flatMap((each) =>
  each.foundAsWritten === null ? [] : [{ ...each, findings: each.foundAsWritten }],
);

describe.each(written)("$name, as written", ({ devices: counts, build, reference, findings }) => {
  it.each(counts)("on %i devices", async (devices) => {
    const hosts = onRanks(build(devices, "as written"), devices);
    await expectReference(hosts, referenceOf(reference(devices)), { findings });
  });
});
