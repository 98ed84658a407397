/**
 * nvFuser's test_host_irs.cpp on one device: proven, and equal to the oracle on the machine and on worker threads. What
 * streams are: test/host/host-irs.test.ts.
 */
import { describe, expect, it } from "vitest";
import { link, record, verify } from "@braid-compiler/braid";
import { at } from "../../src/support/invariant.ts";
import { expectReference } from "../support/expect-reference.ts";
import { referenceOf } from "../support/reference.ts";
import { hostIrPrograms } from "./host-ir-programs.ts";

describe("test_host_irs.cpp", () => {
  it.each(hostIrPrograms)("$name", async ({ build, reference, scalars = {}, streams = 4 }) => {
    await expectReference([build()], referenceOf(reference()), { scalars, streams });
  });

  // nvFuser's output is then an undefined tensor.
  it.each(hostIrPrograms.filter(({ name }) => /Slicing|Selecting/u.test(name)))(
    "$name, not in the top level: the verifier finds an output that nothing writes",
    ({ build }) => {
      const program = link([record({ ...build(), body: [] }, { rank: 0 })]);
      const { findings } = verify(program, { notes: false });
      expect(findings.map(({ code }) => code)).toEqual(["unwritten-read"]);
      expect(at(findings, 0).found).toContain("none of it has been written in this run");
    },
  );
});
