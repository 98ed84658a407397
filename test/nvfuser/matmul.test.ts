/** nvFuser's tests/python/multidevice/test_matmul.py: what is exchanged. The values are in the long suite. */
import { it } from "vitest";
import { matmulPrograms } from "./matmul-programs.ts";
import { expectCommunications } from "./setup.ts";

it.each(matmulPrograms)("$name", (program) => {
  expectCommunications(program);
});
