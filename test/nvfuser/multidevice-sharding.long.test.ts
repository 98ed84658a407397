/** nvFuser's tests/cpp/test_multidevice_sharding.cpp: the values, on 1, 2 and 4 devices. */
import { it } from "vitest";
import { multideviceShardingPrograms } from "./multidevice-sharding-programs.ts";
import { expectValues } from "./setup.ts";

it.each(multideviceShardingPrograms)("$name", expectValues);
