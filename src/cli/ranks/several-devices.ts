/** The check of commands that measure copies between devices: `bench` and `calibrate`. */
import { fail } from "../../diagnostics/diagnostic.ts";

/** Throws `device-count`. */
export function requireSeveralDevices(devices: number): void {
  if (devices >= 2) return;
  fail({
    code: "device-count",
    message: "copies between devices need at least two of them",
    place: { kind: "option", text: "--devices" },
    found: String(devices),
    expected: "a whole number of at least 2",
    help: "pass --devices 2 or more, as many as programs will use",
  });
}
