/** The measured devices. */
import { cpus } from "node:os";
import { capabilityOf, gpuName, loadDriver, out } from "./cuda/gpu.ts";
import { scaledCapability } from "./cuda/ops/device-ops.ts";
import type { Target } from "../compile/compile.ts";

export interface MeasuredMachine {
  /** One device and what drives it: `NVIDIA H200, CUDA 13.0`. */
  readonly device: string;
  /** Whether it is a GPU that multiplies floats of 8 bits. */
  readonly scales?: boolean;
}

export function machineOf(on: Target, localRank: number): MeasuredMachine {
  if (on === "cpu") return { device: cpus()[0]?.model.trim() ?? "CPU" };
  const driver = loadDriver();
  driver.cuInit(0);
  const device = out((value) => driver.cuDeviceGet(value, localRank));
  const version = out((value) => driver.cuDriverGetVersion(value));
  return {
    scales: capabilityOf(driver, device) >= scaledCapability,
    device: `${gpuName(driver, device)}, CUDA ${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`,
  };
}
