/** How many hosts the devices of a run are on. */
import { fail } from "../diagnostics/diagnostic.ts";
import { optionPlace } from "./options/resolve.ts";

/** One host if `devicesPerHost` is not given. Throws `bad-option` if the devices do not fill their hosts. */
export function hostCount(devices: number, devicesPerHost: number | undefined): number {
  if (devicesPerHost === undefined || devices <= devicesPerHost) return 1;
  if (devices % devicesPerHost === 0) return devices / devicesPerHost;
  const fitting = Math.ceil(devices / devicesPerHost) * devicesPerHost;
  return fail("bad-option", "the devices do not fill their hosts", {
    place: optionPlace("devicesPerHost"),
    found: `${devices} devices, ${devicesPerHost} on each host`,
    expected: "as many devices on every host",
    help: `use ${fitting} devices (--devices ${fitting}), or another number for each host`,
  });
}
