/** Stream priorities: streams that other ranks wait for come first, then GEMMs in the order of their streams. */
import { expect, it } from "vitest";
import { streamPriorities } from "../../../src/backends/cuda/ops/device-ops.ts";

it("puts the copy stream and communicators first, and workers in their order after the caller", () => {
  const roles = ["caller", "worker", "worker", "copy", "communicator", "worker", "pair"] as const;
  expect(streamPriorities(roles.map((role) => ({ role })))).toEqual([1, 1, 2, 0, 0, 3, 0]);
});
