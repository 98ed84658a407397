/** Names the measured devices. */
import { cpus } from "node:os";
import { gpuName, loadDriver, out } from "./cuda/gpu.ts";
import type { Target } from "../compile/compile.ts";

export interface MeasuredMachine {
  /** One device and what drives it: `NVIDIA H200, CUDA 13.0`. */
  readonly device: string;
}

export function machineOf(on: Target, localRank: number): MeasuredMachine {
  if (on === "cpu") return { device: cpus()[0]?.model.trim() ?? "CPU" };
  const driver = loadDriver();
  driver.cuInit(0);
  const device = out((value) => driver.cuDeviceGet(value, localRank));
  const version = out((value) => driver.cuDriverGetVersion(value));
  return {
    device: `${gpuName(driver, device)}, CUDA ${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`,
  };
}
