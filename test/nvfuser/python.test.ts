/**
 * nvFuser's tests/python/multidevice/test_multidevice.py, test_communication.py, test_dtensor.py and test_alphafold3.py:
 * what is exchanged. The values are in the long suite.
 */
import { it } from "vitest";
import { alphafoldPrograms } from "./alphafold-programs.ts";
import { pythonPrograms } from "./python-programs.ts";
import { expectCommunications } from "./setup.ts";

it.each([...pythonPrograms, ...alphafoldPrograms("bfloat16")])("$name", (program) => {
  expectCommunications(program);
});
