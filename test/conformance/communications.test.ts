/** Every program of raw-communications.ts is proven right and gives the oracle's result, in each back end's idiom. */
import { describe, it } from "vitest";
import { expectReference } from "../support/expect-reference.ts";
import { rawCommunications, rawProgram, rawReference } from "./raw-communications.ts";

const elements = 6;

describe.each(rawCommunications)("$name", (each) => {
  describe.each(["nccl", "ucc", "cuda"] as const)("%s", (backend) => {
    it.each(each.devices)("on %i devices", async (devices) => {
      const host = rawProgram(each, devices, backend, elements);
      const hosts = Array.from({ length: devices }, () => host);
      await expectReference(hosts, rawReference(each, devices, elements));
    });
  });
});
