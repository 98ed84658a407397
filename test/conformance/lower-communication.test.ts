/**
 * Every case of test/support/lowered-communications.ts is as many communications as the decision table says, and gives
 * the oracle's result.
 */
import { describe, expect, it } from "vitest";
import { DeviceMesh, Fusion, squeeze } from "@braid-compiler/braid";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { devicesOf, loweredCommunications, loweredFusion } from "../support/lowered-communications.ts";

describe.each(loweredCommunications)("$name, shape $shape, $from.mesh to $to.mesh", (lowered) => {
  const devices = devicesOf(lowered);

  it(`is ${lowered.communications}`, () => {
    // Without nvFuser's limits a Scatter on one mesh sends nothing.
    expect(collectivesOf(loweredFusion(lowered), devices, { nvfuserLimits: true })).toBe(lowered.communications);
  });

  it("gives the oracle's result", async () => {
    await expectOracle(loweredFusion(lowered), { devices });
    if (lowered.name === "Scatter") await expectOracle(loweredFusion(lowered), { devices, nvfuserLimits: true });
  });
});

// Axes that another DID type cuts do not change, whatever that type is called on the receivers' mesh.
it.each([
  ["CollectivePermute 1", "Reduce 2", [0, 1], "DIDx"],
  ["CollectivePermute 1", "Reduce 2", [[0], [1]], "DIDy"],
  ["", "Allreduce 2", [[1, 0]], "DIDx"],
] as const)(
  "a squeeze of an axis that one device has is '%s', in nvFuser %s, to %j",
  async (own, inNvfuser, on, type) => {
    const f = new Fusion();
    const x = f.input([3, 1, 2]);
    const y = squeeze(x, [1]);
    f.output(y);
    x.setDeviceMesh(new DeviceMesh([[1, 0]]));
    x.axis(1).parallelize("DIDy");
    x.axis(2).parallelize("DIDx");
    y.setDeviceMesh(new DeviceMesh(on));
    y.axis(1).parallelize(type);
    expect(collectivesOf(f, 2)).toBe(own);
    expect(collectivesOf(f, 2, { nvfuserLimits: true })).toBe(inNvfuser);
    for (const backend of ["nccl", "cuda"] as const) await expectOracle(f, { devices: 2, backend });
  },
);
