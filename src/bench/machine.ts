/** Names the measured devices. */
import { cpus } from "node:os";
import { driverPrototypes } from "../backends/cuda/bindings/driver-api.ts";
import { loadLibrary } from "../backends/cuda/bindings/native-library.ts";
import { out } from "../backends/cuda/gpu.ts";
import type { Target } from "../compile/compile.ts";

export interface Machine {
  /** One device and what drives it: `NVIDIA H200, CUDA 13.0`. */
  readonly device: string;
}

export function machineOf(on: Target, localRank: number): Machine {
  if (on === "cpu") return { device: cpus()[0]?.model.trim() ?? "CPU" };
  const { functions: driver } = loadLibrary("driver", driverPrototypes);
  driver.cuInit(0);
  const device = out((value) => driver.cuDeviceGet(value, localRank));
  const bytes = new Uint8Array(256);
  driver.cuDeviceGetName(bytes, bytes.length, device);
  const version = out((value) => driver.cuDriverGetVersion(value));
  const name = new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
  return { device: `${name}, CUDA ${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}` };
}
