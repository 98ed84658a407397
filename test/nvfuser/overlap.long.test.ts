/** nvFuser's tests/cpp/test_overlap.cpp and tests/python/multidevice/test_overlap.py: the values. */
import { it } from "vitest";
import { overlapPrograms } from "./overlap-programs.ts";
import { pythonOverlapPrograms, unevenOverlapPrograms } from "./overlap-python-programs.ts";
import { expectValues } from "./setup.ts";

it.each([...overlapPrograms, ...pythonOverlapPrograms, ...unevenOverlapPrograms])("$name", expectValues);
