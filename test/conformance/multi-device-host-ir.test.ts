/**
 * nvFuser's test_multidevice_host_ir.cpp, items 1 to 5, on the machine and on worker threads: proven right, or kept as
 * written with what the verifier finds.
 */
import { describe, it } from "vitest";
import { expectReference } from "../support/expect-reference.ts";
import { multiDevicePrograms } from "./multi-device-programs.ts";

describe.each(multiDevicePrograms)("$name", ({ devices: counts, build, reference, ...setting }) => {
  it.each(counts)("on %i devices", async (devices) => {
    const hosts = Array.from({ length: devices }, (_, rank) => build(devices, rank));
    await expectReference(hosts, reference(devices), setting);
  });
});
