/** Times transfers between hosts, of all devices at once, each with those of its place on the other hosts. */
import type { Fusion } from "../../ir/api/fusion.ts";
import type { BetweenHosts, TransferTimings } from "../../simulate/machine-profile.ts";
import { keysOf } from "../../support/keys-of.ts";
import { type Calibration, timingsOf } from "./calibration-host.ts";
import type { ProbeOptions } from "./probe.ts";
import { collectiveProbes, ring } from "./probe-fusions.ts";

const byLibrary = { lowering: { backend: "nccl" }, scope: "between" } as const satisfies ProbeOptions;

/** Null for one host. Devices that share a network interface share its rate in these times. */
export async function measureNetwork(calibration: Calibration): Promise<BetweenHosts | null> {
  const { devices, hosts } = calibration;
  if (hosts === 1) return null;
  const transfers: TransferTimings[] = [];
  for (const type of keysOf(collectiveProbes)) {
    const fusionOf = (bytes: number): Fusion => collectiveProbes[type](hosts, bytes);
    transfers.push({
      type,
      ranks: hosts,
      timings: await timingsOf(calibration, `${type} between hosts`, fusionOf, byLibrary),
    });
  }
  const exchanges = { ...byLibrary, lowering: { ...byLibrary.lowering, p2p: "rotated" } } as const;
  const ringOf = (bytes: number): Fusion => ring(hosts, bytes / 2);
  const ofOne = (time: number): number => time / (hosts - 1);
  const timings = await timingsOf(calibration, "sends and receives between hosts", ringOf, exchanges, ofOne);
  return { nics: devices, transfers: [...transfers, { type: "group", ranks: 2, timings }] };
}
