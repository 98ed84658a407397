/**
 * nvFuser's tests/cpp/test_multidevice_transformer.cpp and tests/python/multidevice/test_transformer.py: what is
 * exchanged. The values are in the long suite.
 */
import { it } from "vitest";
import { smallSizes, transformerPrograms } from "./multidevice-transformer-programs.ts";
import { expectCommunications } from "./setup.ts";

it.each(transformerPrograms.map((build) => build("bfloat16", smallSizes)))("$name: $communications", (program) => {
  expectCommunications(program);
});
