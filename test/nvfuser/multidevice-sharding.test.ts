/** nvFuser's tests/cpp/test_multidevice_sharding.cpp: what is exchanged. The values are in the long suite. */
import { expect, it } from "vitest";
import { DeviceMesh, Fusion, relu } from "@braid-compiler/braid";
import { propagated } from "../support/propagated.ts";
import { multideviceShardingPrograms } from "./multidevice-sharding-programs.ts";
import { arange, cut, expectCommunications, localPart, outputs, place, whole } from "./setup.ts";

it.each(multideviceShardingPrograms)("$name", (program) => {
  expectCommunications(program);
});

it("BackpropMeshes, local sizes", () => {
  const found = multideviceShardingPrograms.find(({ name }) => name === "BackpropMeshes");
  const f = found?.build(2) ?? new Fusion();
  const text = propagated(f);
  expect(f.outputs.map(text)).toEqual(["x2 i2"]);
});

it("MultiDeviceBroadcastTest.NotExpanded", () => {
  const f = new Fusion();
  const x = f.input([1, null]);
  const y = relu(x);
  outputs(f, y);
  place(DeviceMesh.range(2), x);
  expect(propagated(f)(y)).toBe("1 i2");
  // All devices hold the one index of a broadcast axis: there is nothing to divide.
  expect(() => whole(x, 0)).toThrow("size-contradicts-mesh");
});

it("ShardTensor_OuterSplit", () => {
  const devices = 2;
  const x = new Fusion().input([2, 3 * devices]);
  place(DeviceMesh.range(devices), x);
  cut(x, 1, devices);
  const whole = arange([2, 3 * devices]);
  expect(localPart(x, whole, 0)).toEqual([0, 1, 2, 6, 7, 8]);
  expect(localPart(x, whole, 1)).toEqual([3, 4, 5, 9, 10, 11]);
});
