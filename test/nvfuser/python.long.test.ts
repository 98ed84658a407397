/**
 * nvFuser's tests/python/multidevice/test_multidevice.py, test_communication.py, test_dtensor.py and test_alphafold3.py:
 * the values.
 */
import { it } from "vitest";
import { alphafoldPrograms } from "./alphafold-programs.ts";
import { expectNorms } from "./expect-norms.ts";
import { pythonPrograms } from "./python-programs.ts";
import { expectValues } from "./setup.ts";

it.each(pythonPrograms)("$name", expectValues);

it.each(alphafoldPrograms("bfloat16"))("$name", async ({ build, devices = [] }) => {
  for (const count of devices) await expectNorms(build(count), count);
});
