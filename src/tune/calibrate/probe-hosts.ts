/**
 * Probes on several hosts. A probe is written for the devices of one host, 0 .. n-1, and runs on every host at once; or
 * for one device of each host, and runs once for each place on a host, as all of them use the network together.
 */
import { DeviceMesh } from "../../ir/device-mesh.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { HasFusionData } from "../../compile/lower.ts";

export interface ProbeHosts {
  /** Of each host. */
  readonly devices: number;
  readonly hosts: number;
}

/** Among the devices of a host, or among hosts. */
export type ProbeScope = "within" | "between";

export function onHosts(fusion: HasFusionData, { devices, hosts }: ProbeHosts, scope: ProbeScope): HasFusionData {
  if (hosts === 1) return fusion;
  const rows =
    scope === "within"
      ? list(hosts).map((host) => list(devices).map((place) => host * devices + place))
      : list(devices).map((place) => list(hosts).map((host) => host * devices + place));
  const mesh = new DeviceMesh(rows);
  const data = fusion.data();
  const tensors = data.tensors.map((tensor) => ({ ...tensor, mesh: tensor.mesh === null ? null : mesh }));
  const placed: FusionData = { ...data, tensors };
  return { data: () => placed };
}

function list(count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => i);
}
