/** nvFuser's tests/python/multidevice/test_matmul.py: the values. */
import { it } from "vitest";
import { matmulPrograms } from "./matmul-programs.ts";
import { expectValues } from "./setup.ts";

it.each(matmulPrograms)("$name", expectValues);
