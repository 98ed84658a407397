/**
 * What all heads share, as the rotated part of the keys of latent attention, moves before it is expanded to the heads,
 * also if the devices have some of the heads each: all of it is less than one device's part of what it is expanded to.
 */
import { expect, it } from "vitest";
import { DeviceMesh, expand, Fusion, mul, unsqueeze } from "@braid-compiler/braid";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";

/** x [tokens, 4], whose tokens the devices share, times y [heads, tokens, 4], whose heads they share. */
function shared(heads: number, devices: number): Fusion {
  const f = new Fusion();
  const [x, y] = [f.input([12, 4]), f.input([heads, 12, 4])];
  const z = mul(expand(unsqueeze(x, 0), [heads, 12, 4]), y);
  f.output(z);
  for (const tensor of [x, y, z])
    tensor.setDeviceMesh(DeviceMesh.range(devices)).outerSplit(0, devices).parallelize("DIDx");
  return f;
}

it.each([2, 3])("on %d devices", async (devices) => {
  const f = shared(8, devices);
  expect(collectivesOf(f, devices)).toBe("Allgather 1");
  await expectOracle(f, { devices, machineAlone: true });
});

it("with fewer heads than devices, parts of the expanded tensor are exchanged", async () => {
  const f = shared(2, 3);
  expect(collectivesOf(f, 3)).not.toContain("Allgather");
  await expectOracle(f, { devices: 3, machineAlone: true });
});
