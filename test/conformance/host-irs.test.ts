/**
 * nvFuser's test_host_irs.cpp on one device: proven, and equal to the oracle on the machine and on worker threads. What streams are, and
 * what only some iterations or no statement makes: test/host/host-irs.test.ts.
 */
import { describe, it } from "vitest";
import { expectReference } from "../support/expect-reference.ts";
import { referenceOf } from "../support/reference.ts";
import { hostIrPrograms } from "./host-ir-programs.ts";

describe("test_host_irs.cpp", () => {
  it.each(hostIrPrograms)("$name", async ({ build, reference, scalars = {}, streams = 4 }) => {
    await expectReference([build()], referenceOf(reference()), { scalars, streams });
  });
});
