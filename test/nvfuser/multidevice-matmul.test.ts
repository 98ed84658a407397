/** nvFuser's tests/cpp/test_multidevice_matmul.cpp: what is exchanged. The values are in the long suite. */
import { expect, it } from "vitest";
import { Fusion } from "@braid-compiler/braid";
import { propagated } from "../support/propagated.ts";
import { multideviceMatmulPrograms } from "./multidevice-matmul-programs.ts";
import { expectCommunications } from "./setup.ts";

it.each(multideviceMatmulPrograms)("$name", (program) => {
  expectCommunications(program);
});

it("AnnotateWeightOnly, local sizes", () => {
  const f = multideviceMatmulPrograms.find(({ name }) => name === "AnnotateWeightOnly")?.build(2) ?? new Fusion();
  expect(f.outputs.map(propagated(f))).toEqual(["x2 2 5 r3"]);
});
